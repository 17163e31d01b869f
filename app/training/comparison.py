"""The training loop: networks that differ in one operator, trained in alternation, epoch by epoch.

They start from the same weights and see the same batches, so their accuracies can be compared; and as each
epoch of one stands beside the same epoch of the other, so can their times, on a machine whose speed drifts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from app.data import Batches, Dataset, epoch_order
from app.training.config import Config
from app.training.console import Console
from app.training.learner import Learner

_PIECE_SECONDS = 0.5
"""How long, about, the bar and Ctrl-C may have to wait for the learner."""


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


@dataclass
class Comparison:
    """Contestants on their way through the epochs; `check` is called wherever the run may be stopped."""

    config: Config
    dataset: Dataset
    contestants: Sequence[Contestant]
    console: Console
    record: Callable[[dict[str, Any]], None]
    check: Callable[[], None]

    def run(self) -> None:
        """Train every contestant for one epoch, then all of them for the next, and so on."""
        data, settings = self.dataset, self.config.train
        tests = Batches(data.test_images, data.test_labels, None, settings.eval_batch_size)
        for epoch in range(settings.epochs):
            order = epoch_order(self.config.seed, epoch, len(data.train_images))
            batches = Batches(data.train_images, data.train_labels, order, settings.batch_size)
            for contestant in self.contestants:
                seconds = self._train(contestant, epoch, batches)
                self.check()
                self._test(contestant, epoch, tests, seconds)

    def _train(self, contestant: Contestant, epoch: int, batches: Batches) -> float:
        """One epoch; gives its seconds, those of training alone.

        It goes in pieces, which end where a report is due: at iterations 0, `log_every`, 2 * `log_every` …
        """
        operator, log_every, total = contestant.operator, self.config.train.log_every, len(batches)
        seconds, done = 0.0, 0
        with self.console.bar(operator, epoch, total) as bar:
            while done < total:
                self.check()
                report_at = -(-done // log_every) * log_every
                quick = int(_PIECE_SECONDS * done / seconds) + 1 if seconds else 1
                stop = min(report_at + 1, done + quick, total)
                start = time.perf_counter()
                losses, accuracies = contestant.learner.train(batches[done:stop])
                seconds += time.perf_counter() - start
                bar.update(stop - done)
                done = stop
                if done == report_at + 1:
                    loss, accuracy = float(losses[-1]), float(accuracies[-1])
                    event = {"event": "iteration", "operator": operator, "epoch": epoch, "iteration": report_at}
                    self.record({**event, "loss": loss, "accuracy": accuracy})
                    self.console.iteration(operator, epoch, report_at, total, loss, accuracy)
        contestant.learner.end_epoch()
        return seconds

    def _test(self, contestant: Contestant, epoch: int, tests: Batches, seconds: float) -> None:
        loss, accuracy = _overall(*contestant.learner.measure(tests), tests)
        contestant.epochs.append(Epoch(seconds, accuracy, loss))
        event = {"event": "epoch", "operator": contestant.operator, "epoch": epoch, "seconds": seconds}
        self.record({**event, "test_accuracy": accuracy, "test_loss": loss})
        self.console.epoch(contestant.operator, epoch, seconds, loss, accuracy)


def _overall(losses: np.ndarray, accuracies: np.ndarray, tests: Batches) -> tuple[float, float]:
    """Loss and accuracy over all images, from those of the batches, of which the last may be smaller."""
    sizes = np.full(len(tests), tests.batch_size, dtype=np.float64)
    sizes[-1] = tests.count - tests.batch_size * (len(tests) - 1)
    right = np.rint(accuracies * sizes).sum()  # whole images, so that the share is exact
    return float(np.average(losses, weights=sizes)), float(right / tests.count)
