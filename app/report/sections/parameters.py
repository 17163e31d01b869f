"""How large the steps of the first and the last layer are over the epochs, and the operators' own parameters."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence

from app.report.charts import Chart, Line, Point
from app.report.sections.curves import spans_magnitudes
from app.report.sections.section import Section
from app.run.events import Number, Parameters
from app.run.record import RunRecord

_ABOUT = (
    "The norm of the last step of each epoch, divided by the learning rate: with plain SGD, the norm of the gradient. "
    "Where it is much smaller in the first layer than in the last, little of the gradient passes the operator."
)
_Values = Callable[[Parameters], tuple[Number, Number, Number] | None]
"""The mean, the minimum and the maximum of a parameter after an epoch; None if the network has no such parameter."""


def section(runs: Sequence[RunRecord]) -> Section | None:
    """The steps of the first and the last layer, and a chart for each parameter of an operator."""
    events = [event for run in runs for event in run.of(Parameters)]
    weights = list(dict.fromkeys(path for event in events for path in event.steps if path.endswith(_WEIGHT)))
    ends = [("first", weights[0]), ("last", weights[-1])] if len(weights) > 1 else []
    charts = [_chart(runs, path, f"Steps of the {end} layer", "norm", _step(path)) for end, path in ends]
    own = dict.fromkeys(path for event in events for path in event.own)
    charts += [_chart(runs, path, f"The operator's parameter {path}", "value", _own(path)) for path in own]
    return Section("parameters", "Gradients and parameters", _ABOUT, charts) if charts else None


_WEIGHT = ".weight"


def _step(path: str) -> _Values:
    return lambda event: (event.steps[path],) * 3 if path in event.steps else None


def _own(path: str) -> _Values:
    return lambda event: event.own.get(path)


def _chart(runs: Sequence[RunRecord], path: str, title: str, y: str, values: _Values) -> Chart:
    lines = [Line(operator, _points(runs, operator, values), n) for n, operator in enumerate(runs[0].operators)]
    shown = [line for line in lines if line.points]
    return Chart(path, title, "epoch", y, shown, "whole", log_y=spans_magnitudes(shown))


def _points(runs: Sequence[RunRecord], operator: str, values: _Values) -> list[Point]:
    """For each epoch, the mean over the runs, and the smallest and the largest value in any of them."""
    at: dict[int, list[tuple[float, ...]]] = defaultdict(list)
    for run in runs:
        for event in run.of(Parameters, operator):
            if (triple := values(event)) is not None:
                at[event.epoch + 1].append(tuple(math.nan if value is None else value for value in triple))
    columns = {epoch: list(zip(*triples, strict=True)) for epoch, triples in at.items()}
    return [(x, statistics.fmean(m), min(low), max(high)) for x, (m, low, high) in sorted(columns.items())]
