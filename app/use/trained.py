"""The trained networks of a run, as functions from pictures to class probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from app.errors import FileError, MissingFileError
from app.nn import functional
from app.run import events
from app.run.config import Config, load_kept_config
from app.run.folder import CONFIG, WEIGHTS, Weights, read_weights
from app.run.layers import operators_named_in
from app.run.network import Activation, ImageShape, Network, find_all
from app.run.resume import check_sources, sources_of
from app.run.trust import require_named
from app.tensor import Tensor, no_grad


@dataclass(frozen=True)
class Answer:
    """The result of a network, a row per picture."""

    hidden: list[np.ndarray]
    """The values of each hidden layer's units, after the activation."""
    probabilities: np.ndarray


@dataclass(frozen=True)
class TrainedNetwork:
    """A network with a run's trained weights. It runs eagerly: for one picture that is the fastest."""

    operator: str
    accuracy: float | None
    """The test accuracy at the end of the run; None if it was not measured."""
    network: Network

    def __call__(self, pictures: np.ndarray) -> Answer:
        """Classify pictures, given as rows of bytes."""
        with no_grad():
            *hidden, scores = self.network.outputs(Tensor(pictures))
            return Answer([layer.numpy() for layer in hidden], functional.softmax(scores).numpy())


@dataclass(frozen=True)
class TrainedRun:
    """An opened run: its configuration and its networks, in the order of the comparison."""

    path: Path
    config: Config
    networks: list[TrainedNetwork] = field(default_factory=list)
    ended: bool = True
    """Whether its metrics are whole, with the line that a run writes last."""


def open_run(folder: Path, image: ImageShape, custom_ops: Sequence[str] = ()) -> TrainedRun:
    """Open the folder of a run on pictures of this shape. Operators in user files are executed only if named."""
    if not folder.is_dir():
        raise MissingFileError(f"no such folder: {folder}; name the folder of a run, such as those in runs/")
    if not (folder / CONFIG).is_file():
        raise MissingFileError(f"{folder} is not the folder of a run: it has no {CONFIG}")
    config = load_kept_config(folder / CONFIG)
    kept = read_weights(folder)
    if not kept:
        raise MissingFileError(f"{folder} has no {WEIGHTS}: the run saved no network")
    found = list(events.read(folder))
    accuracies = _accuracies(found, config)
    operators = sorted(kept, key=[config.model.activation, config.baseline, *kept].index)
    require_named([*operators, *operators_named_in(config.model.all_layers)], custom_ops, str(folder))
    activations = find_all(operators, config.model)
    for a in activations:
        check_sources(kept[a.name].sources, sources_of([a]), f"the run in {folder} trained with it")
    networks = [
        TrainedNetwork(a.name, accuracies.get(a.name), _network(config, a, image, kept[a.name])) for a in activations
    ]
    return TrainedRun(folder, config, networks, _has_ended(found))


def accuracies_of(folder: Path, config: Config) -> dict[str, float]:
    """Return the final test accuracy of each network that a run keeps: of a comparison, those of the first seed.

    A run with validation images has none before its end, and a run whose metrics may be cut off has none.
    """
    return _accuracies(list(events.read(folder)), config)


def _accuracies(found: Sequence[events.Event], config: Config) -> dict[str, float]:
    if not _has_ended(found):  # the weights may be those of later epochs
        return {}
    kept = (None, config.seed)
    if config.data.validation:
        return {e.operator: e.accuracy for e in found if isinstance(e, events.Tested) and e.seed in kept}
    return {e.operator: e.test_accuracy for e in found if isinstance(e, events.Epoch) and e.seed in kept}


def _has_ended(found: Sequence[events.Event]) -> bool:
    return any(isinstance(event, events.End) for event in found)


def _network(config: Config, activation: Activation, image: ImageShape, weights: Weights) -> Network:
    network = Network(config.model, activation, image, config.data.pixel_range)
    network.eval()
    _check(weights, {path: tuple(p.shape) for path, p in network.named_parameters()})
    network.set_state_dict(weights.arrays)
    return network


def _check(weights: Weights, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check that a weights file fits the configuration beside it."""
    file, arrays = weights.file, weights.arrays
    for name, shape in shapes.items():
        if name not in arrays:
            raise FileError(f"{file} has no {name}, which the network in config.yaml has; it has {', '.join(arrays)}")
        if arrays[name].shape != shape or arrays[name].dtype != np.float32:
            found = f"{arrays[name].dtype}{list(arrays[name].shape)}"
            raise FileError(
                f"{file}: {name} is {found}, and for this network and its pictures it is float32{list(shape)}"
            )
