"""What a learner does, on any engine, and its optimiser and schedule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from app.data import Batches
from app.engine.watch import OperatorRun
from app.errors import FileError
from app.nn import ClipGradByGlobalNorm
from app.ops.random import Streams
from app.optimizer import SGD, Adam, Momentum, Optimizer, RMSProp, lr
from app.run.activation import Activation
from app.run.config import Config, TrainConfig

PerIteration = tuple[np.ndarray, np.ndarray]
"""The loss and the accuracy of each batch."""


class Learner(ABC):
    """The network of an operator and its optimiser, on any engine."""

    shapes: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
    """The shape of the input and of the result of each operator between layers, per image."""

    def __init__(self, config: Config, activation: Activation):
        self.activation = activation
        self.schedule = schedule_of(config.train)
        self.streams = Streams(config.seed)
        """The random streams of the network, such as those of dropout."""

    @property
    def operator(self) -> str:
        """The name of the operator between the layers."""
        return self.activation.name

    @property
    def rate(self) -> float:
        """The learning rate."""
        return self.schedule()

    @abstractmethod
    def compile(self, batches: Batches) -> None:
        """Train without effect, so that all code is compiled before an epoch is timed."""

    @abstractmethod
    def train(self, batches: Batches) -> PerIteration:
        """Take a step for each batch; return the loss and the accuracy before each step."""

    @abstractmethod
    def measure(self, batches: Batches) -> PerIteration:
        """Return the loss and the accuracy of each batch without changing any state."""

    @abstractmethod
    def replay(self, batches: Batches, training: bool) -> Iterator[OperatorRun]:
        """Take a step, or measure, on each batch; yield each operator with its inputs and outputs."""

    def end_epoch(self) -> None:
        """Advance the learning-rate schedule."""
        self.schedule.step()

    def engine_text(self) -> str:
        """Describe how the engine runs the network's operators, in a line; '' if it runs all of them the same way."""
        return ""

    @abstractmethod
    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of every parameter, by its path in the network."""

    @abstractmethod
    def values(self) -> Mapping[str, np.ndarray]:
        """Return the arrays of the parameters, statistics and optimiser state, not copied."""

    @abstractmethod
    def assign(self, name: str, value: np.ndarray) -> None:
        """Set one of `values`."""

    def state(self) -> State:
        """Return a copy of everything the next step depends on: values, learning rate, random streams."""
        seed, count = self.streams.place
        state = {name: np.array(value) for name, value in self.values().items()}
        state |= {f"{_SCHEDULE}{key}": np.array(value) for key, value in self.schedule.state_dict().items()}
        return state | {_SEED: np.array(seed), _COUNT: np.array(count)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore a state returned by `state`; that of another network is an error and changes nothing."""
        actual, expected = _kinds(state), _kinds(self.state())
        if actual != expected:
            raise FileError(f"the state is that of another network: expected {expected}, found {actual}")
        for name in self.values():
            self.assign(name, np.array(state[name]))
        self.schedule.set_state_dict({key: state[f"{_SCHEDULE}{key}"].item() for key in self.schedule.state_keys()})
        self.streams.place = int(state[_SEED]), int(state[_COUNT])


State = dict[str, np.ndarray]

_SCHEDULE, _SEED, _COUNT = "schedule.", "random.seed", "random.count"


def _kinds(state: Mapping[str, np.ndarray]) -> dict[str, str]:
    return {name: f"{value.dtype}{list(value.shape)}" for name, value in state.items()}


def schedule_of(config: TrainConfig) -> lr.LRScheduler:
    """Return the learning-rate schedule."""
    if config.schedule == "cosine":
        return lr.CosineAnnealingDecay(config.learning_rate, config.epochs)
    if config.schedule == "linear":
        return lr.PolynomialDecay(config.learning_rate, config.epochs, end_lr=0.0)
    return lr.LRScheduler(config.learning_rate)


def optimizer_of(config: TrainConfig, schedule: lr.LRScheduler, parameters: list[Any]) -> Optimizer:
    """Return the optimiser."""
    clip = None if config.clip_norm is None else ClipGradByGlobalNorm(config.clip_norm)
    common: dict[str, Any] = {"parameters": parameters, "weight_decay": config.weight_decay, "grad_clip": clip}
    if config.optimizer == "momentum":
        return Momentum(schedule, config.momentum, **common)
    if config.optimizer == "rmsprop":
        return RMSProp(schedule, **common)
    kind = Adam if config.optimizer == "adam" else SGD
    return kind(schedule, **common)
