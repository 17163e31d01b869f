"""The training loop: networks that differ in one operator, trained in alternation, epoch by epoch.

They start from the same weights and see the same batches, so their accuracies can be compared; and as each
epoch of one stands beside the same epoch of the other, so can their times, on a machine whose speed drifts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.data import Batches, Dataset, epoch_order
from app.training.config import Config
from app.training.console import Console
from app.training.learner import Learner, make_learner

Record = Callable[[dict[str, Any]], None]


@dataclass
class Contestant:
    """An operator, its network, and what it has reached so far: one entry an epoch."""

    operator: str
    learner: Learner
    seconds: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)


def contestants(config: Config, pixels: int) -> list[Contestant]:
    """The network with the operator of the model and, if there is one, that with the baseline."""
    operators = dict.fromkeys(name for name in (config.model.activation, config.baseline) if name)
    return [Contestant(name, make_learner(config, name, pixels)) for name in operators]


def compare(config: Config, dataset: Dataset, entered: Sequence[Contestant], console: Console, record: Record) -> None:
    """Train every contestant for one epoch, then all of them for the next, and so on."""
    for epoch in range(config.train.epochs):
        order = epoch_order(config.seed, epoch, len(dataset.train_images))
        batches = Batches(dataset.train_images, dataset.train_labels, order, config.train.batch_size)
        tests = Batches(dataset.test_images, dataset.test_labels, None, config.train.eval_batch_size)
        for contestant in entered:
            _train_epoch(contestant, epoch, batches, config.train.log_every, console, record)
            _test(contestant, epoch, tests, console, record)


def _train_epoch(
    contestant: Contestant, epoch: int, batches: Batches, log_every: int, console: Console, record: Record
) -> None:
    """One epoch, in pieces that end where a report is due: at iterations 0, `log_every`, 2 * `log_every` …"""
    seconds, done = 0.0, 0
    operator, total = contestant.operator, len(batches)
    with console.bar(operator, epoch, total) as bar:
        while done < total:
            stop = min(-(-done // log_every) * log_every + 1, total)
            start = time.perf_counter()
            losses, accuracies = contestant.learner.train(batches[done:stop])
            seconds += time.perf_counter() - start
            bar.update(stop - done)
            done = stop
            if (done - 1) % log_every == 0:
                loss, accuracy = float(losses[-1]), float(accuracies[-1])
                console.iteration(operator, epoch, done - 1, total, loss, accuracy)
                event = {"event": "iteration", "operator": operator, "epoch": epoch, "iteration": done - 1}
                record({**event, "loss": loss, "accuracy": accuracy})
    contestant.learner.end_epoch()
    contestant.seconds.append(seconds)


def _test(contestant: Contestant, epoch: int, tests: Batches, console: Console, record: Record) -> None:
    losses, accuracies = contestant.learner.measure(tests)
    sizes = np.full(len(tests), tests.batch_size, dtype=np.float64)
    sizes[-1] = tests.count - tests.batch_size * (len(tests) - 1)
    loss, accuracy = float(np.average(losses, weights=sizes)), float(np.average(accuracies, weights=sizes))
    contestant.loss.append(loss)
    contestant.accuracy.append(accuracy)
    seconds = contestant.seconds[-1]
    console.epoch(contestant.operator, epoch, seconds, loss, accuracy)
    event = {"event": "epoch", "operator": contestant.operator, "epoch": epoch, "seconds": seconds}
    record({**event, "test_accuracy": accuracy, "test_loss": loss})


def summary(entered: Sequence[Contestant], notes: Sequence[str] = ()) -> str:
    """The table that ends a run: what each operator reached and cost, beside the last one, the baseline."""
    finished = [c for c in entered if c.accuracy]
    if not finished:
        return "Interrupted before the first epoch was tested; there is nothing to compare."
    rows = [["operator", "test accuracy", "seconds per epoch", "ratio"]]
    rows += [
        [c.operator, f"{c.accuracy[-1]:.4f}", f"{statistics.median(c.seconds):.3f}", ratio(c, finished[-1])]
        for c in finished
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    return "\n".join([*lines, *notes])


def ratio(one: Contestant, other: Contestant) -> str:
    """The median over epochs of the time of one over the time of the other in the same epoch."""
    pairs = [a / b for a, b in zip(one.seconds, other.seconds, strict=False) if b > 0]
    return f"{statistics.median(pairs):.2f}" if pairs else "-"
