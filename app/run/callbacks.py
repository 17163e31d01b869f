"""Who listens to a run: the console, the metrics, the checkpoints ... each a Callback in the list that the loop has."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from app.run.events import Epoch, Tested
from app.run.learners import Learner
from app.run.network import Activation


@dataclass
class Contestant:
    """An operator, its network, and the epochs that it has finished."""

    operator: str
    learner: Learner
    epochs: list[Epoch] = field(default_factory=list)
    tested: Tested | None = None
    """The result on the test images, where validation images were held back; None before the end."""
    activation: Activation | None = None
    """The operator itself, where something may ask about it."""


@dataclass
class Position:
    """Where a run is: which operator is being trained, in which epoch, and how many of its iterations are done."""

    contestant: Contestant
    turn: int
    """The contestant's number."""
    epoch: int
    iterations: int
    """How many an epoch has."""
    done: int = 0
    seconds: float = 0.0
    """Seconds of training in this epoch so far."""


class Callback:
    """Listens to a run, between the parts of it that are timed.

    The loop calls its callbacks in the order of the list, and changes `position` as it goes on. An exception ends the
    run. Methods that are not overridden do nothing.
    """

    every: int | None = None
    """`piece` is called after this many iterations of each epoch, twice as many ... and perhaps in between."""

    def begin(self, position: Position) -> None:
        """A contestant begins an epoch, or goes on with one."""

    def report(self, position: Position, loss: float, accuracy: float) -> None:
        """The loss and the accuracy of the last iteration that was done; at iterations 0, `log_every` ..."""

    def piece(self, position: Position, losses: np.ndarray, accuracies: np.ndarray) -> None:
        """Some more iterations are done, with these losses and accuracies. No update is half done now."""

    def test(self, position: Position) -> None:
        """A contestant has done all iterations of an epoch, and is about to be tested."""

    def epoch(self, position: Position, result: Epoch) -> None:
        """A contestant has finished an epoch and was tested."""

    def end(self) -> None:
        """The run is over, or an exception was raised."""
