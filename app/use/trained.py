"""The trained networks of a run, as functions from pictures to class probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from app.engine import Executor, Scope
from app.errors import FileError, MissingFileError
from app.graph import Program, names, program_guard, static_mode
from app.nn import functional
from app.run import events
from app.run.config import Config, load_kept_config
from app.run.folder import CONFIG, WEIGHTS, Weights, check_sums, read_weights
from app.run.network import Activation, ImageShape, Network, find_activations, pixels_of
from app.run.trust import Trust
from app.static import data
from app.tensor import Tensor, no_grad

Run = Callable[[np.ndarray], list[np.ndarray]]
"""A function from pictures to the values of each hidden layer, followed by the probabilities."""


@dataclass(frozen=True)
class Answer:
    """The result of a network, a row per picture."""

    hidden: list[np.ndarray]
    """The values of each hidden layer's units, after the activation."""
    probabilities: np.ndarray


@dataclass(frozen=True)
class TrainedNetwork:
    """A network with a run's trained weights, on the run's engine."""

    operator: str
    accuracy: float | None
    """The test accuracy at the end of the run; None if it was not measured."""
    run: Run

    def __call__(self, pictures: np.ndarray) -> Answer:
        """Classify pictures, given as rows of bytes."""
        *hidden, probabilities = self.run(pictures)
        return Answer(hidden, probabilities)


@dataclass(frozen=True)
class TrainedRun:
    """An opened run: its configuration and its networks, in the order of the comparison."""

    path: Path
    config: Config
    networks: list[TrainedNetwork] = field(default_factory=list)
    activations: list[Activation] = field(default_factory=list)
    """The operators of the networks."""
    checked: bool = True
    """Whether the hashes of its files were verified."""


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
    checked = check_sums(folder)
    accuracies = accuracies_of(folder)
    networks = []
    operators = sorted(kept, key=[config.model.activation, config.baseline, *kept].index)
    activations = find_activations(operators, Trust(custom_ops, by=str(folder)))
    for activation in activations:
        build = _eager if config.engine == "eager" else _program
        run = build(config, activation, image, kept[activation.name])
        networks.append(TrainedNetwork(activation.name, accuracies.get(activation.name), run))
    return TrainedRun(folder, config, networks, activations, checked)


def accuracies_of(folder: Path) -> dict[str, float]:
    """Return the final test accuracy of each network of a run."""
    found = list(events.read(folder))
    accuracies = {event.operator: event.test_accuracy for event in found if isinstance(event, events.Epoch)}
    return accuracies | {event.operator: event.accuracy for event in found if isinstance(event, events.Tested)}


def _program(config: Config, activation: Activation, image_shape: ImageShape, weights: Weights) -> Run:
    """Run the network as a Program on the configured engine."""
    main, scope, executor = Program(), Scope(), Executor(engine=config.engine)
    with names.guard(), program_guard(main, Program()), static_mode():
        image = data("image", [None, pixels_of(image_shape)], "uint8")
        network = Network(config.model, activation, image_shape, config.data.pixel_range)
        network.eval()
        fetch = [value.name for value in _values(network, image)]
    parameters = dict(network.named_parameters())
    _check(weights, {path: tuple(p.shape) for path, p in parameters.items()})
    scope.values = {parameter.name: weights.arrays[path] for path, parameter in parameters.items()}
    return lambda pictures: [np.asarray(v) for v in executor.run(main, {image.name: pictures}, fetch, scope=scope)]


def _eager(config: Config, activation: Activation, image_shape: ImageShape, weights: Weights) -> Run:
    """Run the network eagerly."""
    network = Network(config.model, activation, image_shape, config.data.pixel_range)
    network.eval()
    _check(weights, {path: tuple(p.shape) for path, p in network.named_parameters()})
    network.set_state_dict(weights.arrays)

    def run(pictures: np.ndarray) -> list[np.ndarray]:
        with no_grad():
            return [value.numpy() for value in _values(network, Tensor(pictures))]

    return run


def _values(network: Network, image: Any) -> list[Any]:
    *hidden, scores = network.outputs(image)
    return [*hidden, functional.softmax(scores)]


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
