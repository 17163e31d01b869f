"""The training loop: networks that differ in one operator, trained in alternation, epoch by epoch.

They start from the same weights and see the same batches, so their accuracies can be compared. They take turns, in
another order in every epoch, so their times can be compared on a machine whose speed drifts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from app.data import Batches, Dataset, epoch_order
from app.run.callbacks import Callback, Contestant, Position
from app.run.config import Config
from app.run.events import Epoch
from app.run.steps import Steps

_PIECE_SECONDS = 0.5
"""The approximate maximum delay of the progress bar, in seconds."""


@dataclass
class TrainingLoop:
    """Trains contestants epoch by epoch and calls the callbacks."""

    config: Config
    dataset: Dataset
    contestants: Sequence[Contestant]
    callbacks: Sequence[Callback]
    first: int = 0
    """The first epoch; a resumed run has finished those before it."""
    steps: Steps = field(default_factory=Steps)

    def run(self) -> None:
        """Train every contestant for one epoch, then all of them for the next, and so on."""
        try:
            for epoch in range(self.first, self.config.train.epochs):
                self._epoch(epoch)
        finally:
            for callback in self.callbacks:
                callback.end()

    def _epoch(self, epoch: int) -> None:
        data, settings = self.dataset, self.config.train
        order = epoch_order(self.config.seed, epoch, len(data.train_images))
        batches = Batches(data.train_images, data.train_labels, order, settings.batch_size)
        turn = epoch % len(self.contestants)
        for contestant in (*self.contestants[turn:], *self.contestants[:turn]):
            position = Position(contestant, epoch, len(batches))
            self._train(position, batches)
            self._test(position)
        for callback in self.callbacks:
            callback.finished(epoch)

    def _train(self, position: Position, batches: Batches) -> None:
        """Train an epoch, in pieces. Reports are at iterations 0, `log_every`, 2 * `log_every` …"""
        learner, log_every = position.contestant.learner, self.config.train.log_every
        for callback in self.callbacks:
            callback.begin(position)
        while position.done < position.iterations:
            report_at = -(-position.done // log_every) * log_every
            stop = min(report_at + 1, self._next_stop(position))
            losses, accuracies = self.steps.train(position, batches[position.done : stop])
            position.done = stop
            for callback in self.callbacks if stop == report_at + 1 else ():
                callback.report(position, float(losses[-1]), float(accuracies[-1]))
            for callback in self.callbacks:
                callback.piece(position, losses, accuracies)
        learner.end_epoch()

    def _next_stop(self, position: Position) -> int:
        """Return the end of a piece, apart from reports."""
        quick = int(_PIECE_SECONDS * position.done / position.seconds) + 1 if position.seconds else 1
        return min(position.done + quick, position.iterations)

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
