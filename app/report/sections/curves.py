"""Loss and accuracy of each operator over the epochs, and accuracy against training time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from app.report.charts import Chart, Line, Point
from app.report.record import Record, over_seeds
from app.report.sections.section import Section

_ABOUT = "The {} curves are measured after each epoch. "


def section(record: Record) -> Section | None:
    """The curves of training."""
    if not record.iterations and not record.epochs:
        return None
    charts = [
        _over_epochs(record, "loss", "Loss", "loss", "test_loss"),
        _over_epochs(record, "accuracy", "Accuracy", "accuracy", "test_accuracy", "share"),
        _over_time(record),
    ]
    about = (
        _ABOUT.format(record.tested_on) if record.epochs else ""
    ) + "The faint curves show single training batches."
    seeds = (
        f" Curves are means over {record.seeds} seeds; the bands reach from the lowest to the highest."
        if record.seeds > 1
        else ""
    )
    return Section("training", "Training", about + seeds, [chart for chart in charts if chart.lines])


def _over_epochs(record: Record, name: str, title: str, batch: str, test: str, unit: str = "") -> Chart:
    per_epoch = _iterations_per_epoch(record)
    lines = []
    for colour, operator in enumerate(record.operators):
        iterations = [event for event in record.iterations if event.operator == operator]
        seen = over_seeds(iterations, lambda e: e.epoch + (e.iteration + 1) / per_epoch, _value(batch))
        lines.append(Line(f"{operator}, training", seen, colour, faint=True))
    for colour, operator in enumerate(record.operators):
        tested = over_seeds(record.epochs_of(operator), lambda e: e.epoch + 1, _value(test))
        lines.append(Line(f"{operator}, {record.tested_on}", tested, colour))
    shown = [line for line in lines if line.points]
    x_unit, log_y = "whole" if record.epochs else "", not unit and _spans_magnitudes(shown)
    return Chart(name, title, "epoch", name, shown, x_unit, unit, log_y=log_y)


def _spans_magnitudes(lines: Sequence[Line]) -> bool:
    """Return whether the curves need a logarithmic axis."""
    values = [point[1] for line in lines for point in line.points if 0 < point[1] < math.inf]
    return bool(values) and max(values) > 100 * min(values)


def _over_time(record: Record) -> Chart:
    lines = []
    for colour, operator in enumerate(record.operators):
        epochs = record.epochs_of(operator)
        took = accumulate(point[1] for point in over_seeds(epochs, lambda e: e.epoch, lambda e: e.seconds))
        tested = over_seeds(epochs, lambda e: e.epoch, _value("test_accuracy"))
        points: list[Point] = [(at, *point[1:]) for at, point in zip(took, tested, strict=True)]
        lines.append(Line(operator, points, colour))
    shown = [line for line in lines if line.points]
    return Chart(
        "time", "Accuracy against time", "training time", f"{record.tested_on} accuracy", shown, "seconds", "share"
    )


def _iterations_per_epoch(record: Record) -> int:
    if record.start is not None and record.start.data.training:
        return -(-record.start.data.training // record.config.train.batch_size)
    return max((event.iteration + 1 for event in record.iterations), default=1)


def _value(name: str) -> Callable[[Any], float | None]:
    return lambda event: getattr(event, name)
