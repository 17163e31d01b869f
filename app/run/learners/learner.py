"""What the training loop needs of a network together with what trains it, and what both kinds of learner share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from app.data import Batches
from app.engine.watch import OperatorRun
from app.errors import FileError
from app.nn import ClipGradByGlobalNorm
from app.ops.random import Streams
from app.ops.reduction import sum_ as total
from app.optimizer import SGD, Adam, Momentum, Optimizer, RMSProp, lr
from app.optimizer.lr import LRScheduler
from app.run.config import TrainConfig

PerIteration = tuple[np.ndarray, np.ndarray]
"""The loss and the accuracy of each batch."""


class Learner(Protocol):
    """What the training loop needs of a network, whichever engine runs it."""

    def warm_up(self, batches: Batches) -> None:
        """Train without effect, so that what is compiled at first use is compiled before an epoch is timed."""

    def train(self, batches: Batches) -> PerIteration:
        """Take a step for each batch; gives the loss and the accuracy before each step."""

    def measure(self, batches: Batches) -> PerIteration:
        """The loss and the accuracy of each batch, changing nothing."""

    def activity(self) -> list[Activity]:
        """What the units of each hidden layer did on the images that were measured last; nothing without a report."""

    def scores(self, batches: Batches) -> np.ndarray:
        """The scores of the classes, a row for each image, changing nothing."""

    def operator_inputs(self, batches: Batches) -> list[np.ndarray]:
        """What the operator of each hidden layer is given for these images, changing nothing."""

    def looks(self, batches: Batches, training: bool) -> Iterator[OperatorRun]:
        """The operators of a step on each batch, or of measuring it, one by one with what they read and made."""

    def end_epoch(self) -> None:
        """Advance the learning-rate schedule."""

    def weights(self) -> dict[str, np.ndarray]:
        """A copy of every parameter, by its path in the network."""

    def state(self) -> State:
        """All that the next step depends on, copied: weights, what the optimiser remembers, rate, random streams."""

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go to where such a learner was when it gave this state."""

    def how(self) -> str:
        """How the engine runs the network's operators, in a line; '' where it runs all of them alike."""


class Activity(NamedTuple):
    """What the units of a hidden layer did over all images."""

    mean: float
    zeros: float
    """The share of their values that were zero."""
    dead: float
    """The share of units that were zero on every image."""


def counted(hidden: Any) -> list[Any]:
    """For each unit of a hidden layer, on how many images of a batch it is zero, and the sum of its values."""
    return [total((hidden == 0.0).astype("float32"), axis=0), total(hidden.astype("float32"), axis=0)]


def summed_up(counts: Sequence[np.ndarray], images: int) -> list[Activity]:
    """The activity of each layer, from what `counted` gave of it at every batch."""
    found = []
    for zero, values in zip(counts[::2], counts[1::2], strict=True):
        zeros, sums = zero.sum(axis=0, dtype=np.float64), values.sum(axis=0, dtype=np.float64)
        mean, share = sums.mean() / images, zeros.mean() / images
        found.append(Activity(float(mean), float(share), float(np.mean(zeros == images))))
    return found


State = dict[str, np.ndarray]

_SCHEDULE, _SEED, _COUNT = "schedule.", "random.seed", "random.count"


def state_of(values: Mapping[str, np.ndarray], schedule: LRScheduler, streams: Streams) -> State:
    """Copies of a network's values, and where its schedule and its random streams stand."""
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
    """Take a state over, if it is one of such a network, of which these are the values now; all of it or nothing."""
    found, expected = _kinds(state), _kinds(state_of(values, schedule, streams))
    if found != expected:
        raise FileError(f"the state is that of another network: expected {expected}, found {found}")
    for name in values:
        put(name, np.array(state[name]))
    schedule.set_state_dict({key: state[f"{_SCHEDULE}{key}"].item() for key in schedule.state_keys()})
    streams.place = int(state[_SEED]), int(state[_COUNT])


def _kinds(state: Mapping[str, np.ndarray]) -> dict[str, str]:
    return {name: f"{value.dtype}{list(value.shape)}" for name, value in state.items()}


def schedule_of(config: TrainConfig) -> lr.LRScheduler:
    """How the learning rate goes."""
    if config.schedule == "cosine":
        return lr.CosineAnnealingDecay(config.learning_rate, config.epochs)
    if config.schedule == "linear":
        return lr.PolynomialDecay(config.learning_rate, config.epochs, end_lr=0.0)
    return lr.LRScheduler(config.learning_rate)


def optimizer_of(config: TrainConfig, schedule: lr.LRScheduler, parameters: list[Any]) -> Optimizer:
    """What changes the parameters."""
    clip = None if config.clip_norm is None else ClipGradByGlobalNorm(config.clip_norm)
    common: dict[str, Any] = {"parameters": parameters, "weight_decay": config.weight_decay, "grad_clip": clip}
    if config.optimizer == "momentum":
        return Momentum(schedule, config.momentum, **common)
    if config.optimizer == "rmsprop":
        return RMSProp(schedule, **common)
    kind = Adam if config.optimizer == "adam" else SGD
    return kind(schedule, **common)
