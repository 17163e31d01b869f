"""HTML displays for notebooks: Programs, runs, findings, Tensors and operators.

Charts, tables and colours are those of the report. Everything is inside one element of class `opsmith`, so that styles
do not affect the rest of the notebook. User text is escaped.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from functools import cache, singledispatch
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from app.checking.finding import found
from app.checking.findings import Findings
from app.custom.operator import CustomOperator
from app.errors import AppError
from app.experiment.results import ComparisonResult, RunResult, TrainingResult
from app.graph import Program
from app.inspection.calls import Inspection
from app.inspection.picture import draw
from app.ops import OpDef
from app.report.charts import Chart, Line
from app.report.charts import draw as draw_chart
from app.report.markup import Child, as_html, tag
from app.report.page import ASSETS
from app.report.record import Record
from app.report.sections import curves
from app.report.wording import seconds, share
from app.run.network import Activation
from app.tensor import Tensor, grad

MOST_OPERATORS = 150
"""Larger Programs are shown as text: drawing them takes seconds, and the result is unreadable."""
ROWS, COLUMNS = 8, 8
"""The number of rows and columns of a Tensor that are shown."""
PLOTTED = np.linspace(-4.0, 4.0, 161)
"""The inputs at which an operator is plotted."""


def html_of(value: Any) -> str | None:
    """Return the HTML of an object; None if its text is sufficient."""
    shown = _shown(value)
    return None if shown is None else f"<style>{_style()}</style>{as_html(shown)}"


@singledispatch
def _shown(value: Any) -> Element | None:
    return None


@_shown.register
def _program(program: Program) -> Element | None:
    picture = _picture(program, "Program")
    return _box(tag("pre", str(program)) if picture is None else picture)


def _picture(program: Program, title: str) -> Element | None:
    """Return the picture from `inspect`; None for a large Program or without Graphviz."""
    if not 0 < sum(len(block.ops) for block in program.blocks) <= MOST_OPERATORS:
        return None
    try:
        drawn = draw(program, title)
    except AppError:
        return None
    address = "data:image/svg+xml;base64," + base64.b64encode(drawn.encode()).decode()
    return tag("img", src=address, alt=str(program), class_="picture")


@_shown.register
def _inspection(inspection: Inspection) -> Element:
    parts = []
    for section in inspection:
        picture = None if section.program is None else _picture(section.program, section.heading)
        opened = {"open": "open"} if len(inspection) == 1 else {}
        parts.append(tag("details", tag("summary", section.heading), picture, tag("pre", section.text), **opened))
    return _box(*parts)


@_shown.register
def _findings(findings: Findings) -> Element:
    rows = [
        tag("tr", tag("td", v.state, class_=f"state {v.state}"), tag("th", v.check, scope="row"), tag("td", v.words))
        for v in findings
    ]
    outcome = "all checks passed" if findings.ok else f"{len(findings.failed)} of {len(findings)} FAILED"
    return _box(
        tag("p", tag("code", findings.operator), " – ", tag("b", outcome)),
        tag("table", tag("tbody", rows), class_="findings"),
    )


@_shown.register
def _tensor(tensor: Tensor) -> Element | None:
    values = tensor.numpy()
    if not 1 <= values.ndim <= 4 or not values.size or values.dtype.kind not in "biuf":
        return None
    sizes = " × ".join(map(str, values.shape))
    flow = "" if tensor.stop_gradient else ", requires a gradient"
    first = values.reshape(-1, *values.shape[-2:])[0] if values.ndim > 1 else values[None]
    part = f"; the first of {int(np.prod(values.shape[:-2]))} matrices" if values.ndim > 2 else ""
    return _box(
        tag("p", tag("b", f"Tensor {sizes}"), f" {tensor.dtype}{flow}{part}", class_="about"),
        tag("table", tag("tbody", _cells(first)), class_="numbers"),
        tag("p", _figures(values), class_="about"),
    )


def _cells(matrix: np.ndarray) -> list[Element]:
    """Return rows of numbers; middle ones are elided if there are many."""
    rows, columns = (_ends(size, most) for size, most in zip(matrix.shape, (ROWS, COLUMNS), strict=True))
    return [
        tag("tr", [tag("td", "…" if r is None or c is None else _number(matrix[r, c])) for c in columns]) for r in rows
    ]


def _ends(size: int, most: int) -> list[int | None]:
    """Return the indices of the first and last elements, with None for the elided ones."""
    if size <= most:
        return list(range(size))
    return [*range(most // 2), None, *range(size - most // 2, size)]


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, np.floating) else str(value)


def _figures(values: np.ndarray) -> str:
    if values.dtype.kind != "f":
        return f"from {values.min()} to {values.max()}"
    finite = values[np.isfinite(values)]
    told = f"mean {finite.mean():.4g}, from {finite.min():.4g} to {finite.max():.4g}" if finite.size else ""
    odd = values.size - finite.size
    return told + (f"; {odd} of {values.size} NaN or infinite" if odd else "")


@_shown.register
def _operator(operator: OpDef) -> Element | None:
    if not isinstance(operator, CustomOperator):
        return None
    source, derived = Activation(operator.name, operator).source, getattr(operator, "gradient_source", "")
    chart = _plot(operator)
    plot = None if chart is None else draw_chart(chart)
    if plot is not None:
        plot.remove(plot[-1])  # the values as a table
    return _box(
        tag("p", tag("b", operator.name), f" {found(operator, operator.name).kind}", class_="about"),
        tag("pre", source) if source else None,
        tag("details", tag("summary", "The derived gradient"), tag("pre", derived), open="open") if derived else None,
        plot,
    )


def _plot(operator: OpDef) -> Chart | None:
    """Plot an operator of one number and its derivative; None for other operators."""
    if len(operator.inputs) != 1 or len(operator.outputs) != 1:
        return None
    x = Tensor(PLOTTED.copy(), stop_gradient=False)
    try:
        with np.errstate(all="ignore"):
            y = operator(x)
            if y.shape != x.shape:
                return None
            slope = None if y.stop_gradient else grad([y], [x], allow_unused=True)[0]
    except Exception:  # reported by `app.check`; a display does not repeat it
        return None
    curves = {"f(x)": y.numpy()} | ({} if slope is None else {"f'(x)": slope.numpy()})
    lines = [
        Line(name, [(float(a), float(b), float(b), float(b)) for a, b in zip(PLOTTED, values, strict=True)], colour)
        for colour, (name, values) in enumerate(curves.items())
    ]
    return Chart("operator", operator.name, "x", "", lines)


@_shown.register
def _training(run: TrainingResult) -> Element:
    section = curves.section(_record(run))
    charts = [] if section is None else [draw_chart(chart) for chart in section.charts if chart.name != "loss"]
    return _box(_stopped(run), _ranking(run), tag("div", charts, class_="charts"), _kept(run))


@_shown.register
def _comparison(run: ComparisonResult) -> Element:
    words = [tag("li", verdict) for verdict in run.verdicts]
    return _box(_stopped(run), _ranking(run), tag("ul", words, class_="verdicts") if words else None, _kept(run))


def _stopped(run: RunResult) -> Child:
    return tag("p", tag("b", "Interrupted:"), " this is what was finished.") if run.interrupted else None


def _kept(run: RunResult) -> Element:
    return tag("p", "The run is in ", tag("code", str(run.folder)), class_="about")


def _ranking(run: RunResult) -> Element:
    """The operators, the most accurate first, with intervals over seeds where there are several."""
    rows = [row for row in run.table if "test_accuracy" in row]
    if not rows:
        return tag("p", "No epoch was finished, so there is nothing to show.")
    low = min(row.get("low", row["test_accuracy"]) for row in rows)
    high = max(row.get("high", row["test_accuracy"]) for row in rows)
    several = any("low" in row for row in rows)
    heads = ["operator", "test accuracy", *(["95 % interval"] if several else []), "an epoch"]
    body = [tag("tr", _row(row, (low, high) if several else None)) for row in rows]
    return tag(
        "table",
        tag("thead", tag("tr", [tag("th", head, scope="col") for head in heads])),
        tag("tbody", body),
        class_="ranking",
    )


def _row(row: dict[str, Any], ends: tuple[float, float] | None) -> list[Element]:
    cells = [tag("th", tag("code", row["operator"]), scope="row"), tag("td", share(row["test_accuracy"]))]
    if ends is not None:
        cells.append(tag("td", _interval(row, *ends)))
    return [*cells, tag("td", seconds(row["seconds_per_epoch"]))]


def _interval(row: dict[str, Any], low: float, high: float) -> Element:
    """Draw an interval as a line with a dot at the mean, on an axis shared by all rows."""
    room = (high - low) or 1e-3
    at = {name: f"{6 + 228 * (row[name] - low) / room:.1f}" for name in ("low", "test_accuracy", "high") if name in row}
    words = f"{share(row['low'])} to {share(row['high'])}" if "low" in row else "one seed"
    parts = [tag("title", words)]
    if "low" in at:
        parts.append(tag("path", d=f"M{at['low']} 9H{at['high']}", class_="line c0"))
    parts.append(tag("circle", cx=at["test_accuracy"], cy="9", r="4.5", class_="mean"))
    return tag("svg", parts, viewBox="0 0 240 18", class_="interval", role="img", aria_label=words)


def _record(run: RunResult) -> Record:
    """Return the data for the report's curves without the run's folder, which may be gone."""
    epochs = [epoch for seeds in run.epochs.values() for epochs in seeds for epoch in epochs]
    return Record(run.folder, run.config, "", epochs=epochs)  # type: ignore[arg-type]


def _box(*children: Child | Sequence[Child]) -> Element:
    return tag("div", *children, class_="opsmith")


@cache
def _style() -> str:
    """Return the report's styles for charts and tables, limited to this element, with a few more rules."""
    text = (ASSETS / "report.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{\s*(.*?)\s*\}", text, re.DOTALL)
    parts = re.split(r"^/\* (.+) \*/$", text, flags=re.MULTILINE)
    kept = "".join(rules for name, rules in zip(parts[1::2], parts[2::2], strict=True) if name in ("Charts", "Tables"))
    colours = "".join(re.findall(r"^\.c\d .*$", text, re.MULTILINE))
    return re.sub(r"\s+", " ", _RULES % {"light": light, "dark": dark, "kept": colours + kept})


_RULES = """
.opsmith { %(light)s color-scheme: light; color: var(--ink); max-width: 900px; font: 14px/1.5 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) {
  body:not([data-jp-theme-light="true"]):not(.vscode-light) .opsmith { %(dark)s color-scheme: dark; }
}
body[data-jp-theme-light="false"] .opsmith, body.vscode-dark .opsmith, html[theme="dark"] .opsmith {
  %(dark)s color-scheme: dark;
}
.opsmith {
  %(kept)s
  p, ul, figure { margin: 4px 0; } h3 { font-size: 1em; margin: 0; } .about { color: var(--quiet); }
  .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%%, 300px), 1fr)); gap: 12px; }
  pre { white-space: pre; overflow-x: auto; background: var(--card); border: 1px solid var(--edge); padding: 8px 12px;
    color: var(--ink); font-size: 12px; line-height: 1.4; }
  th, td { padding: 2px 14px 2px 0; text-align: left; background: none; color: var(--ink); vertical-align: top; }
  .ranking td, .numbers td { text-align: right; } code { color: inherit; background: none; }
  .ranking thead th { color: var(--quiet); font-weight: normal; }
  .interval { width: 240px; height: 18px; display: block; }
  .mean { fill: var(--c0); } .verdicts { padding-left: 1.2em; } .picture { max-width: 100%%; }
  .state { font-weight: 600; color: var(--c2); } .state.note { color: var(--c4); } .state.FAILED { color: var(--c6); }
}
"""
