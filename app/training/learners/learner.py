"""What the training loop needs of a network together with what trains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from app.data import Batches
from app.engine.watch import OperatorRun
from app.training.learners.activity import Activity
from app.training.learners.state import State

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
