"""The interface of learners, and what both kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from app.data import Batches
from app.engine.watch import OperatorRun
from app.errors import FileError
from app.nn import ClipGradByGlobalNorm
from app.ops.random import Streams
from app.optimizer import SGD, Adam, Momentum, Optimizer, RMSProp, lr
from app.optimizer.lr import LRScheduler
from app.run.config import TrainConfig

PerIteration = tuple[np.ndarray, np.ndarray]
"""The loss and the accuracy of each batch."""


class Learner(Protocol):
    """The interface between the training loop and a network on any engine."""

    @property
    def shapes(self) -> Sequence[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The shape of the input and of the result of each operator between layers, per image."""

    @property
    def rate(self) -> float:
        """The learning rate."""

    def warm_up(self, batches: Batches) -> None:
        """Train without effect, to compile before an epoch is timed."""

    def train(self, batches: Batches) -> PerIteration:
        """Take a step for each batch; return the loss and the accuracy before each step."""

    def measure(self, batches: Batches) -> PerIteration:
        """Return the loss and the accuracy of each batch without changing any state."""

    def looks(self, batches: Batches, training: bool) -> Iterator[OperatorRun]:
        """Replay a step, or a measurement, on each batch; yield each operator with its inputs and outputs."""

    def end_epoch(self) -> None:
        """Advance the learning-rate schedule."""

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of every parameter, by its path in the network."""

    def state(self) -> State:
        """Return a copy of everything the next step depends on: weights, optimiser state, learning rate, random
        streams."""

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore a state returned by `state`."""

    def how(self) -> str:
        """Describe how the engine runs the network's operators, in a line; '' if it runs all of them the same way."""


State = dict[str, np.ndarray]

_SCHEDULE, _SEED, _COUNT = "schedule.", "random.seed", "random.count"


def state_of(values: Mapping[str, np.ndarray], schedule: LRScheduler, streams: Streams) -> State:
    """Copy a network's values and the state of its schedule and random streams."""
    seed, count = streams.place
    state = {name: np.array(value) for name, value in values.items()}
    state |= {f"{_SCHEDULE}{key}": np.array(value) for key, value in schedule.state_dict().items()}
    return state | {_SEED: np.array(seed), _COUNT: np.array(count)}


def restore_from(
    state: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    put: Callable[[str, np.ndarray], None],
    schedule: LRScheduler,
    streams: Streams,
) -> None:
    """Restore a state if it matches the network with these values; otherwise raise an error and change nothing."""
    actual, expected = _kinds(state), _kinds(state_of(values, schedule, streams))
    if actual != expected:
        raise FileError(f"the state is that of another network: expected {expected}, found {actual}")
    for name in values:
        put(name, np.array(state[name]))
    schedule.set_state_dict({key: state[f"{_SCHEDULE}{key}"].item() for key in schedule.state_keys()})
    streams.place = int(state[_SEED]), int(state[_COUNT])


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
