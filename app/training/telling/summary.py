"""What a run says before it begins and when it has ended."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from app.data import Dataset
from app.data.dataset import CLASSES
from app.training.config import Config
from app.training.watcher import Contestant


def introduction(config: Config, dataset: Dataset, entered: Sequence[Contestant], ranks: str = "") -> str:
    """What is trained, on what; `ranks` is a line about those that share the work, if there are many."""
    train, test = len(dataset.train_images), len(dataset.test_images)
    checked = "verified" if dataset.verified else "not verified"
    widths = "-".join(map(str, [dataset.train_images.shape[1], *config.model.hidden, CLASSES]))
    first, *others = (contestant.operator for contestant in entered)
    operators = first + (f" against {' and '.join(others)}" if others else "")
    lines = [
        f"Data: {train:,} training and {test:,} test images, {dataset.origin} ({checked})",
        *_sample_note(dataset),
        f"Network {widths} with {operators}; engine {config.engine}, seed {config.seed}",
        *([ranks] if ranks else []),
    ]
    width = max(len(contestant.operator) for contestant in entered)
    lines += [f"{c.operator:{width}}  {how}" for c in entered if (how := c.learner.how())]
    if not config.model.hidden:
        lines.append("Note: without hidden layers there is nothing for an activation to work on.")
    return "\n".join([*lines, ""])


def summary(config: Config, dataset: Dataset, entered: Sequence[Contestant], columns: int | None = None) -> str:
    """The table that ends a run: what each operator reached and cost, in so many columns if there are no more."""
    notes = _sample_note(dataset)
    if any(len(contestant.epochs) < config.train.epochs for contestant in entered):
        finished = ", ".join(f"{contestant.operator} {len(contestant.epochs)}" for contestant in entered)
        notes.append(f"Stopped before its end. Epochs finished, of {config.train.epochs}: {finished}.")
    lost = [c.operator for c in entered if c.epochs and not math.isfinite(c.epochs[-1].loss)]
    if lost:
        notes.append(f"The loss of {' and '.join(lost)} is no number any more: try a smaller train.learning_rate.")
    return "\n".join([*_table(entered, columns), *notes])


def ratio(one: Contestant, other: Contestant) -> float:
    """The median over epochs of the time of one over the time of the other in the same epoch."""
    pairs = zip(one.epochs, other.epochs, strict=False)
    return statistics.median(a.seconds / b.seconds for a, b in pairs)


def outcome(config: Config, entered: Sequence[Contestant]) -> dict[str, Any]:
    """What the summary says, as an event."""
    finished = all(len(contestant.epochs) == config.train.epochs for contestant in entered)
    return {"event": "summary", "finished": finished, "operators": [_figures(c, entered[-1]) for c in entered]}


def _figures(contestant: Contestant, baseline: Contestant) -> dict[str, Any]:
    figures: dict[str, Any] = {"operator": contestant.operator, "epochs": len(contestant.epochs)}
    if contestant.epochs:
        last = contestant.epochs[-1]
        figures |= {"test_accuracy": last.accuracy, "test_loss": last.loss if math.isfinite(last.loss) else None}
        figures["seconds"] = _median_seconds(contestant)
    if contestant.epochs and baseline.epochs and baseline is not contestant:
        figures["ratio"] = ratio(contestant, baseline)
    return figures


def _table(entered: Sequence[Contestant], columns: int | None) -> list[str]:
    finished = [contestant for contestant in entered if contestant.epochs]
    if not finished:
        return ["No epoch was finished, so there is nothing to show."]
    rows = [["operator", "test accuracy", "seconds per epoch (median)"]]
    rows += [[c.operator, f"{c.epochs[-1].accuracy:.4f}", f"{_median_seconds(c):.3f}"] for c in finished]
    if len(finished) > 1:
        baseline = finished[-1]
        rows = [[*row, cell] for row, cell in zip(rows, ["ratio", *_ratios(finished, baseline)], strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if columns is not None and sum(widths) + 2 * len(widths) - 2 > columns:
        return _upright(rows)
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _upright(rows: Sequence[Sequence[str]]) -> list[str]:
    """The table with a line for each cell."""
    (_, *heads), *others = rows
    lines = []
    for name, *cells in others:
        lines += [name, *(f"  {head}  {cell}" for head, cell in zip(heads, cells, strict=True))]
    return lines


def _ratios(finished: Sequence[Contestant], baseline: Contestant) -> list[str]:
    return [f"{ratio(contestant, baseline):.2f}" for contestant in finished]


def _median_seconds(contestant: Contestant) -> float:
    return statistics.median(epoch.seconds for epoch in contestant.epochs)


def _sample_note(dataset: Dataset) -> list[str]:
    if not dataset.is_sample:
        return []
    return ["Note: this is the small sample, not the full MNIST; accuracies are lower than the full set gives."]
