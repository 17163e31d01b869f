"""Callbacks of the training loop. The progress bar and the checkpoints are callbacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.run.events import Parameters, Record
from app.run.learners import Learner
from app.run.network import OF_OPERATORS


@dataclass
class Position:
    """The position of a run: the network being trained, its epoch and the number of completed iterations."""

    learner: Learner
    epoch: int
    iterations: int
    """The number of iterations per epoch."""
    done: int = 0
    seconds: float = 0.0
    """Seconds of training in this epoch so far, without tests and callbacks."""


class Callback:
    """The base of callbacks. They are called outside the timed parts of a run.

    The loop calls its callbacks in list order and updates `position`. An exception ends the run. Methods that are not
    overridden do nothing. What is measured is recorded as events, see `opsmith.run.events`.
    """

    def begin_epoch(self, position: Position) -> None:
        """A network begins an epoch."""

    def advance(self, position: Position) -> None:
        """A network has been trained for some iterations."""

    def end_epoch(self, position: Position) -> None:
        """A network has finished an epoch and was tested."""

    def end_round(self, epoch: int) -> None:
        """All networks have finished an epoch."""

    def end(self) -> None:
        """The run has ended, normally or by an exception."""


class ParameterMetrics(Callback):
    """Records, after every epoch, how far its last step moved the parameters, and the operator's own parameters."""

    def __init__(self, record: Record):
        self._record = record
        self._before: dict[str, np.ndarray] = {}
        self._rate = 0.0

    def begin_epoch(self, position: Position) -> None:
        self._remember(position)

    def advance(self, position: Position) -> None:
        self._remember(position)

    def _remember(self, position: Position) -> None:
        if position.done == position.iterations - 1:
            self._before, self._rate = position.learner.weights(), position.learner.rate

    def end_epoch(self, position: Position) -> None:
        after = position.learner.weights()
        steps = {path: float(np.linalg.norm(value - self._before[path])) for path, value in after.items()}
        own = {
            path: (float(value.mean()), float(value.min()), float(value.max()))
            for path, value in after.items()
            if path.startswith(OF_OPERATORS)
        }
        rate = self._rate or np.nan
        scaled = {path: norm / rate for path, norm in steps.items()}
        self._record(Parameters(position.learner.operator, position.epoch, scaled, own))
