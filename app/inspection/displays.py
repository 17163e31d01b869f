"""HTML displays for notebooks: Programs, runs, findings, Tensors and operators.

Charts, tables and colours are those of the report. Everything is inside one element of class `opsmith`, so that styles
do not affect the rest of the notebook. User text is escaped.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from functools import cache, singledispatch
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from app.checking.findings import Findings
from app.checking.operators import user_operator
from app.custom.operator import CustomOperator, derived_source, written_as
from app.errors import AppError
from app.experiment.results import Result
from app.graph import Program
from app.inspection.calls import Inspection
from app.inspection.picture import draw
from app.ops import OpDef
from app.reading import source_text
from app.report.charts import Chart, Line, image
from app.report.markup import Child, as_html, asset, tag
from app.report.sections import curves, result
from app.tensor import Tensor, grad

MOST_OPERATORS = 150
"""Larger Programs are shown as text: drawing them takes seconds, and the result is unreadable."""
ROWS, COLUMNS = 8, 8
"""The number of rows and columns of a Tensor that are shown."""
PLOTTED = np.linspace(-4.0, 4.0, 161)
"""The inputs at which an operator is plotted."""
STEP = 1e-6
"""The step of finite differences."""
DIFFERENCES = "finite differences"


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
        for v in findings.shown
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
    odd = values.size - finite.size
    parts = [f"{odd} of {values.size} NaN or infinite"] if odd else []
    if finite.size:
        mean = (finite / np.float64(finite.size)).sum()  # the sum itself may overflow
        parts.insert(0, f"mean {mean:.4g}, from {finite.min():.4g} to {finite.max():.4g}")
    return "; ".join(parts)


@_shown.register
def _operator(operator: OpDef) -> Element | None:
    if not isinstance(operator, CustomOperator):
        return None
    source, derived = _source(operator), derived_source(operator)
    chart = _plot(operator)
    return _box(
        tag("p", tag("b", operator.name), f" {user_operator(operator, operator.name).kind}", class_="about"),
        tag("pre", source) if source else None,
        tag("details", tag("summary", "The derived gradient"), tag("pre", derived), open="open") if derived else None,
        None if chart is None else image(chart),
    )


def _source(operator: CustomOperator) -> str:
    """Return the source of an operator's functions; '' where it cannot be read."""
    functions = dict.fromkeys([written_as(operator), operator.backward_function])
    return "\n".join(filter(None, (source_text(function) for function in functions if function is not None)))


def _plot(operator: OpDef) -> Chart | None:
    """Plot an operator of one number, its derivative and finite differences; None for other operators."""
    if len(operator.inputs) != 1 or len(operator.outputs) != 1:
        return None
    x = Tensor(PLOTTED.copy(), stop_gradient=False)
    try:
        with np.errstate(all="ignore"):
            y = operator(x)
            if y.shape != x.shape:
                return None
            slope = None if y.stop_gradient else grad([y], [x], allow_unused=True)[0]
            above, below = (operator(Tensor(PLOTTED + step)).numpy() for step in (STEP, -STEP))
    except Exception:  # reported by `opsmith.check`; a display does not repeat it
        return None
    curves = {"f(x)": (y.numpy(), 0)}
    if slope is not None:
        curves |= {"f'(x)": (slope.numpy(), 1), DIFFERENCES: ((above - below) / (2 * STEP), 1)}
    lines = [
        Line(
            name,
            [(float(a), float(b), float(b), float(b)) for a, b in zip(PLOTTED, values, strict=True)],
            colour,
            name == DIFFERENCES,
        )
        for name, (values, colour) in curves.items()
    ]
    return Chart("operator", operator.name, "x", "", lines)


@_shown.register
def _result(outcome: Result) -> Element:
    """The verdict and the ranked table or the cards of the report, and for a single run its curves."""
    section = curves.section(outcome.runs) if outcome.comparison is None else None
    charts = [] if section is None else [image(chart) for chart in section.charts if chart.name != "loss"]
    shown = result.parts(outcome.runs, outcome.comparison)
    return _box(shown, tag("div", charts, class_="charts") if charts else None)


def _box(*children: Child | Iterable[Child]) -> Element:
    return tag("div", *children, class_="opsmith")


@cache
def _style() -> str:
    """Return the styles of the report's parts and of notebooks. All rules are limited to the class `opsmith`."""
    text = "".join(map(asset, ("colours.css", "chart.css", "parts.css", "notebook.css")))
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", text))
