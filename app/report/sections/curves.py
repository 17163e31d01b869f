"""Loss and accuracy of each operator over the epochs, and accuracy against training time."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

from app.report.charts import Chart, Line, Point
from app.report.sections.section import Section
from app.run.events import Epoch, Iteration
from app.run.record import RunRecord

_ABOUT = "The {} curves are measured after each epoch. "


def section(runs: Sequence[RunRecord]) -> Section | None:
    """The curves of training."""
    epochs = any(run.of(Epoch) for run in runs)
    if not epochs and not any(run.of(Iteration) for run in runs):
        return None
    charts = [
        _over_epochs(runs, "loss", "Loss", "loss", "test_loss"),
        _over_epochs(runs, "accuracy", "Accuracy", "accuracy", "test_accuracy", "share"),
        _over_time(runs),
    ]
    about = (_ABOUT.format(runs[0].tested_on) if epochs else "") + "The faint curves show single training batches."
    seeds = (
        f" Curves are means over {len(runs)} seeds; the bands reach from the lowest to the highest."
        if len(runs) > 1
        else ""
    )
    return Section("training", "Training", about + seeds, [chart for chart in charts if chart.lines])


def _over_epochs(runs: Sequence[RunRecord], name: str, title: str, batch: str, test: str, unit: str = "") -> Chart:
    per_epoch = _iterations_per_epoch(runs)
    lines = []
    for colour, operator in enumerate(runs[0].operators):
        iterations = [event for run in runs for event in run.iterations(operator)]
        training = _over_runs(iterations, lambda e: e.epoch + (e.iteration + 1) / per_epoch, _value(batch))
        lines.append(Line(f"{operator}, training", training, colour, faint=True))
    for colour, operator in enumerate(runs[0].operators):
        epochs = [event for run in runs for event in run.epochs(operator)]
        tested = _over_runs(epochs, lambda e: e.epoch + 1, _value(test))
        lines.append(Line(f"{operator}, {runs[0].tested_on}", tested, colour))
    shown = [line for line in lines if line.points]
    x_unit, log_y = "whole" if any(run.of(Epoch) for run in runs) else "", not unit and spans_magnitudes(shown)
    return Chart(name, title, "epoch", name, shown, x_unit, unit, log_y=log_y)


def spans_magnitudes(lines: Sequence[Line]) -> bool:
    """Return whether the curves need a logarithmic axis."""
    values = [point[1] for line in lines for point in line.points if 0 < point[1] < math.inf]
    return bool(values) and max(values) > 100 * min(values)


def _over_time(runs: Sequence[RunRecord]) -> Chart:
    lines = []
    for colour, operator in enumerate(runs[0].operators):
        epochs = [event for run in runs for event in run.timed(operator)]
        took = accumulate(point[1] for point in _over_runs(epochs, lambda e: e.epoch, lambda e: e.seconds))
        tested = _over_runs(epochs, lambda e: e.epoch, _value("test_accuracy"))
        points: list[Point] = [(at, *point[1:]) for at, point in zip(took, tested, strict=True)]
        lines.append(Line(operator, points, colour))
    shown, y = [line for line in lines if line.points], f"{runs[0].tested_on} accuracy"
    return Chart("time", "Accuracy against time", "training time", y, shown, "seconds", "share")


def _iterations_per_epoch(runs: Sequence[RunRecord]) -> int:
    start = runs[0].start
    if start is not None and start.data.training:
        return -(-start.data.training // runs[0].config.train.batch_size)
    return max((event.iteration + 1 for run in runs for event in run.of(Iteration)), default=1)


def _value(name: str) -> Callable[[Any], float | None]:
    return lambda event: getattr(event, name)


def _over_runs(events: Iterable[Any], x: Callable[[Any], float], y: Callable[[Any], float | None]) -> list[Point]:
    """Return x, and the mean, minimum and maximum of y over the runs, for each x; NaN if y is NaN."""
    at: dict[float, list[float]] = defaultdict(list)
    for event in events:
        value = y(event)
        at[x(event)].append(math.nan if value is None else value)
    return [(key, statistics.fmean(at[key]), min(at[key]), max(at[key])) for key in sorted(at)]
