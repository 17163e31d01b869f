"""The training loop: networks that differ in one operator, trained in alternation, epoch by epoch.

They start from the same weights and see the same batches, so their accuracies can be compared. Epochs alternate between
the networks, so their times can be compared on a machine whose speed drifts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from app.data import Batches, Dataset, epoch_order
from app.run.callbacks import Callback, Contestant, Position
from app.run.config import Config
from app.run.events import Epoch
from app.run.steps import Steps

_PIECE_SECONDS = 0.5
"""The approximate maximum delay of the progress bar and of Ctrl-C, in seconds."""


class Start(NamedTuple):
    """Where a run begins or resumes: the epoch, the contestant and the number of finished iterations."""

    epoch: int = 0
    turn: int = 0
    done: int = 0
    seconds: float = 0.0


@dataclass
class TrainingLoop:
    """Trains contestants epoch by epoch and calls the callbacks."""

    config: Config
    dataset: Dataset
    contestants: Sequence[Contestant]
    callbacks: Sequence[Callback]
    start: Start = field(default_factory=Start)
    steps: Steps = field(default_factory=Steps)

    def run(self) -> None:
        """Train every contestant for one epoch, then all of them for the next, and so on."""
        try:
            for epoch in range(self.start.epoch, self.config.train.epochs):
                self._epoch(epoch)
        finally:
            for callback in self.callbacks:
                callback.end()

    def _epoch(self, epoch: int) -> None:
        data, settings = self.dataset, self.config.train
        order = epoch_order(self.config.seed, epoch, len(data.train_images))
        batches = Batches(data.train_images, data.train_labels, order, settings.batch_size)
        for turn, contestant in enumerate(self.contestants):
            position = Position(contestant, turn, epoch, len(batches))
            if epoch == self.start.epoch and turn <= self.start.turn:
                if turn < self.start.turn:
                    continue
                position.done, position.seconds = self.start.done, self.start.seconds
            self._train(position, batches)
            self._test(position)

    def _train(self, position: Position, batches: Batches) -> None:
        """Train the rest of an epoch; only training itself is timed. The epoch is split where a report or a callback is
        due. Reports are at iterations 0, `log_every`, 2 * `log_every` …
        """
        learner, log_every = position.contestant.learner, self.config.train.log_every
        for callback in self.callbacks:
            callback.begin(position)
        while position.done < position.iterations:
            report_at = -(-position.done // log_every) * log_every
            stop = min(report_at + 1, self._next_stop(position))
            start = time.perf_counter()
            losses, accuracies = self.steps.train(position, batches[position.done : stop])
            position.seconds += time.perf_counter() - start
            position.done = stop
            for callback in self.callbacks if stop == report_at + 1 else ():
                callback.report(position, float(losses[-1]), float(accuracies[-1]))
            for callback in self.callbacks:
                callback.piece(position, losses, accuracies)
        learner.end_epoch()

    def _next_stop(self, position: Position) -> int:
        """Return the end of a piece, apart from reports."""
        quick = int(_PIECE_SECONDS * position.done / position.seconds) + 1 if position.seconds else 1
        due = [(position.done // c.every + 1) * c.every for c in self.callbacks if c.every]
        return min(position.done + quick, position.iterations, *due)

    def _test(self, position: Position) -> None:
        data, contestant = self.dataset, position.contestant
        for callback in self.callbacks:
            callback.test(position)
        tests = Batches(data.test_images, data.test_labels, None, self.config.train.eval_batch_size)
        loss, accuracy = overall(*self.steps.measure(position, tests), tests)
        result = Epoch(contestant.operator, position.epoch, position.seconds, accuracy, loss)
        contestant.epochs.append(result)
        for callback in self.callbacks:
            callback.epoch(position, result)


def overall(losses: np.ndarray, accuracies: np.ndarray, tests: Batches) -> tuple[float, float]:
    """Combine the losses and accuracies of batches; the last batch may be smaller."""
    sizes = np.full(len(tests), tests.batch_size, dtype=np.float64)
    sizes[-1] = tests.count - tests.batch_size * (len(tests) - 1)
    right = np.rint(accuracies * sizes).sum()  # a whole number of images, so that the accuracy is exact
    return float(np.average(losses, weights=sizes)), float(right / tests.count)
