"""One run: data, networks, the comparison, and what is printed and kept of it."""

from __future__ import annotations

from app.data import Batches, load
from app.deployment.for_use import model_for_use
from app.errors import OperatorError
from app.training.activation import Activation, find_activation
from app.training.comparison import Comparison, Contestant
from app.training.config import Config
from app.training.console import Console
from app.training.interruption import Interruption
from app.training.learner import make_learner
from app.training.report import introduction, summary
from app.training.run_folder import RunFolder


def train(config: Config, name: str) -> None:
    """Train and compare. However a run ends, it says and keeps what it had."""
    operators = dict.fromkeys(operator for operator in (config.model.activation, config.baseline) if operator)
    activations = [find_activation(operator) for operator in operators]  # before any data is fetched in vain
    dataset = load(config.data.source, config.data.sources, config.data.folder)
    with Interruption() as interruption:
        pixels = dataset.train_images.shape[1]
        entered = [Contestant(activation.name, make_learner(config, activation, pixels)) for activation in activations]
        console = Console(max(map(len, operators)), config.train.epochs)
        console.say(introduction(config, dataset, entered))
        batches = Batches(dataset.train_images, dataset.train_labels, None, config.train.batch_size)
        for contestant in entered:
            interruption.check()
            contestant.learner.warm_up(batches[:1])
        interruption.check()
        with RunFolder(config, name) as folder:
            try:
                Comparison(config, dataset, entered, console, folder.record, interruption.check).run()
            finally:
                text = summary(config, dataset, entered)
                folder.save_summary(text)
                for contestant in entered:
                    folder.save_weights(contestant.operator, contestant.learner.weights())
                _save_model(folder, config, activations[0], pixels, entered[0], console)
                console.say(f"\n{text}\n\nThe run is in {folder.path}/")


def _save_model(
    folder: RunFolder, config: Config, activation: Activation, pixels: int, contestant: Contestant, console: Console
) -> None:
    """Keep the network for use, if its operator is one that a file can refer to."""
    try:
        folder.save_model(model_for_use(config, activation, pixels, contestant.learner.weights()))
    except OperatorError as error:
        console.say(f"note: no model for `python -m app predict` was kept: {error}")
