"""This framework at the reference work, through the same learner that train.py uses."""

from __future__ import annotations

from app.data import Batches, epoch_order
from app.run.activation import find_activation
from app.run.config import load_config
from app.run.learners import make_learner
from app.run.options import CONFIGS
from benchmarks.work import PIXELS, run_epochs


def train(data, work, operator, engine="compiled"):
    """Train with an operator, named as in a config."""
    learner = prepare(data, work, operator, engine)
    tests = Batches(data.test_images, data.test_labels, None, 1000)
    epochs = iter(range(work.epochs))

    def test():
        _, accuracies = learner.measure(tests)
        return float(accuracies.mean())  # of batches that are all as large

    return run_epochs(work, lambda: learner.train(shuffled(data, work, next(epochs))), test)


def prepare(data, work, operator, engine="compiled"):
    """A learner that has compiled what it will run."""
    settings = [f"seed={work.seed}", f"engine={engine}", f"model.hidden={list(work.hidden)}"]
    settings += [f"train.batch_size={work.batch}", f"train.learning_rate={work.rate}", "report=false"]
    config = load_config(CONFIGS / "seed.yaml", settings)
    learner = make_learner(config, find_activation(operator), PIXELS)
    learner.compile(shuffled(data, work, 0)[:1])
    return learner


def shuffled(data, work, epoch):
    order = epoch_order(work.seed, epoch, len(data.train_images))
    return Batches(data.train_images, data.train_labels, order, work.batch)
