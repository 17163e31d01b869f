"""Who listens to a run: the console, the metrics, the checkpoints … each a Watcher in the list that the loop has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from app.training.activation import Activation
from app.training.learners import Learner


class Epoch(NamedTuple):
    """What an epoch cost, and what the network was worth after it."""

    seconds: float
    accuracy: float
    loss: float


@dataclass
class Contestant:
    """An operator, its network, and the epochs that it has finished."""

    operator: str
    learner: Learner
    epochs: list[Epoch] = field(default_factory=list)
    activation: Activation | None = None
    """The operator itself, where something may ask about it."""


@dataclass
class Place:
    """Where a run is: whose turn it is, in which epoch, and how many of its iterations are done."""

    contestant: Contestant
    turn: int
    """The contestant's number."""
    epoch: int
    iterations: int
    """How many an epoch has."""
    done: int = 0
    seconds: float = 0.0
    """Those of training in this epoch so far."""


class Watcher:
    """Listens to a run, between the parts of it that are timed.

    The loop calls its watchers in the order of the list, and changes `place` as it goes on. What one raises ends the
    run. Methods that are left as they are here do nothing.
    """

    every: int | None = None
    """`piece` is called after this many iterations of each epoch, twice as many … and perhaps in between."""

    def begin(self, place: Place) -> None:
        """A contestant begins an epoch, or goes on with one."""

    def report(self, place: Place, loss: float, accuracy: float) -> None:
        """The loss and the accuracy of the last iteration that was done; at iterations 0, `log_every` …"""

    def piece(self, place: Place, losses: np.ndarray, accuracies: np.ndarray) -> None:
        """Some more iterations are done, and these were their losses and accuracies: nothing is half done now."""

    def epoch(self, place: Place, result: Epoch) -> None:
        """A contestant has finished an epoch and was tested."""

    def end(self) -> None:
        """No more will come: the run is over, or something was raised."""
