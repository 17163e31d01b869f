"""What a run says before it begins and when it has ended."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from app.data import Dataset
from app.data.dataset import CLASSES
from app.training.comparison import Contestant
from app.training.config import Config


def introduction(config: Config, dataset: Dataset, entered: Sequence[Contestant]) -> str:
    """What is trained, on what."""
    train, test = len(dataset.train_images), len(dataset.test_images)
    checked = "verified" if dataset.verified else "not verified"
    widths = "-".join(map(str, [dataset.train_images.shape[1], *config.model.hidden, CLASSES]))
    operators = " against ".join(contestant.operator for contestant in entered)
    lines = [
        f"Data: {train:,} training and {test:,} test images, {dataset.origin} ({checked})",
        *_sample_note(dataset),
        f"Network {widths} with {operators}; engine {config.engine}, seed {config.seed}",
    ]
    width = max(len(contestant.operator) for contestant in entered)
    lines += [f"{c.operator:{width}}  {how}" for c in entered if (how := c.learner.how())]
    if not config.model.hidden:
        lines.append("Note: without hidden layers there is nothing for an activation to work on.")
    return "\n".join([*lines, ""])


def summary(config: Config, dataset: Dataset, entered: Sequence[Contestant]) -> str:
    """The table that ends a run: what each operator reached and cost."""
    notes = _sample_note(dataset)
    if any(len(contestant.epochs) < config.train.epochs for contestant in entered):
        finished = ", ".join(f"{contestant.operator} {len(contestant.epochs)}" for contestant in entered)
        notes.append(f"Stopped before its end. Epochs finished, of {config.train.epochs}: {finished}.")
    lost = [c.operator for c in entered if c.epochs and not math.isfinite(c.epochs[-1].loss)]
    if lost:
        notes.append(f"The loss of {' and '.join(lost)} is no number any more: try a smaller train.learning_rate.")
    return "\n".join([*_table(entered), *notes])


def ratio(one: Contestant, other: Contestant) -> float:
    """The median over epochs of the time of one over the time of the other in the same epoch."""
    pairs = zip(one.epochs, other.epochs, strict=False)
    return statistics.median(a.seconds / b.seconds for a, b in pairs)


def _table(entered: Sequence[Contestant]) -> list[str]:
    finished = [contestant for contestant in entered if contestant.epochs]
    if not finished:
        return ["No epoch was finished, so there is nothing to show."]
    rows = [["operator", "test accuracy", "seconds per epoch (median)"]]
    rows += [[c.operator, f"{c.epochs[-1].accuracy:.4f}", f"{_median_seconds(c):.3f}"] for c in finished]
    if len(finished) > 1:
        baseline = finished[-1]
        rows = [[*row, cell] for row, cell in zip(rows, ["ratio", *_ratios(finished, baseline)], strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _ratios(finished: Sequence[Contestant], baseline: Contestant) -> list[str]:
    return [f"{ratio(contestant, baseline):.2f}" for contestant in finished]


def _median_seconds(contestant: Contestant) -> float:
    return statistics.median(epoch.seconds for epoch in contestant.epochs)


def _sample_note(dataset: Dataset) -> list[str]:
    if not dataset.is_sample:
        return []
    return ["Note: this is the small sample, not the full MNIST; accuracies are lower than the full set gives."]
