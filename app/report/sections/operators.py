"""Each operator: its curve over the inputs in the network, its source, and the gradient check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from app.report.charts import Chart, Line, Point
from app.report.markup import tag
from app.report.sections.section import Section
from app.run.descriptions import Description, Histogram, Numbers
from app.run.events import Checked, Epoch
from app.run.record import RunRecord

_ABOUT = (
    "The inputs are those of each operator in its trained network, over all hidden layers and 1,000 images. The curves "
    "cover their range."
)


def section(runs: Sequence[RunRecord]) -> Section | None:
    """Return the operators, if the run stored their descriptions."""
    run = runs[0]
    descriptions = [(n, run.descriptions[name]) for n, name in enumerate(run.operators) if name in run.descriptions]
    checked = {one.operator: one.words for one in run.of(Checked)}
    if not descriptions and not checked:
        return None
    charts = [
        _chart("values", "f(x)", "result", [(n, p.operator, p, "y") for n, p in descriptions]),
        _derivatives(descriptions),
        _inputs(descriptions if run.of(Epoch) else []),  # those of a network that was hardly trained say nothing
    ]
    every = dict.fromkeys([*run.operators, *checked, *run.descriptions])  # with those of single layers
    named = [name for name in every if name in checked or run.descriptions.get(name, _NOTHING).sources]
    parts = [_operator(run, name, checked.get(name, "")) for name in named]
    about = _ABOUT if charts[-1].lines else ""
    return Section("operators", "Operator", about, [chart for chart in charts if chart.lines], parts)


_NOTHING = Description("")


def _chart(name: str, title: str, y: str, columns: Sequence[tuple[int, str, Description, str]]) -> Chart:
    lines = [
        Line(label, _points(description.curve.x, getattr(description.curve, column)), number, column == "differences")
        for number, label, description, column in columns
        if description.curve is not None
    ]
    return Chart(f"operator-{name}", title, "input", y, lines)


def _derivatives(descriptions: Sequence[tuple[int, Description]]) -> Chart:
    """Return the derivative from backward, and that from finite differences if the backward is user code."""
    custom = [(n, f"{p.operator}, finite differences", p, "differences") for n, p in descriptions if p.sources]
    return _chart(
        "slopes",
        "f′(x) from backward (faint: finite differences)",
        "derivative",
        [*custom, *((n, p.operator, p, "slope") for n, p in descriptions)],
    )


def _inputs(descriptions: Sequence[tuple[int, Description]]) -> Chart:
    lines = [Line(p.operator, _bars(p.histogram), n) for n, p in descriptions if p.histogram is not None]
    return Chart("operator-inputs", "Inputs in the network", "input", "share of inputs", lines, "", "share")


def _bars(histogram: Histogram) -> list[Point]:
    total, width = max(sum(histogram.counts), 1), (histogram.high - histogram.low) / max(len(histogram.counts), 1)
    shares = [count / total for count in histogram.counts]
    return [(histogram.low + (n + 0.5) * width, share, share, share) for n, share in enumerate(shares)]


def _points(x: Sequence[float], y: Numbers) -> list[Point]:
    values = [math.nan if value is None else value for value in y]
    return [(at, value, value, value) for at, value in zip(x, values, strict=True)]


def _curve_text(run: RunRecord, name: str, description: Description) -> str:
    if name not in run.operators:
        return "none: only single layers use this operator"
    if description.curve or not description.sources:
        return ""
    return "none: the operator is not elementwise, or raises an error"


def _operator(run: RunRecord, name: str, checked: str) -> Element:
    description = run.descriptions.get(name, _NOTHING)
    how = run.start.engines.get(name, "") if run.start is not None else ""
    lost = description.histogram.not_finite if description.histogram is not None else 0
    facts = {
        "check": checked,
        "compiled": how,
        "inputs": f"{lost:,} of them are NaN or infinite" if lost else "",
        "curve": _curve_text(run, name, description),
    }
    pairs = [tag("div", tag("dt", what), tag("dd", description)) for what, description in facts.items() if description]
    sources = [
        part
        for what, text in description.sources.items()
        for part in (tag("h4", what), tag("pre", text.rstrip("\n"), tabindex="0"))
    ]
    return tag("div", tag("h3", tag("code", name)), tag("dl", pairs, class_="facts"), sources, class_="operator")
