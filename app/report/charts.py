"""Charts as SVG of any width, and their data for the zooming script.

The curves use coordinates from 0 to 1000 on both axes, stretched to the available space. Ticks, labels and markers are
positioned in per cent, so that they keep their size. Zooming shows a part of the curves. Operators differ in colour,
dashes and markers, and a click on a name shows only its curves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

from app.report.axes import Axis, around
from app.report.markup import tag

SPAN = 1000
POINTS = 400
"""The maximum number of points of a curve; more are averaged."""
FEW = 40
"""The maximum number of points with markers and table rows."""

Point = tuple[float, float, float, float]
"""x, y, and the minimum and the maximum of y over runs."""


@dataclass(frozen=True)
class Line:
    """A curve. `colour` is the index of the operator; a `faint` curve is drawn behind others."""

    name: str
    points: Sequence[Point]
    colour: int
    faint: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", _fewer(self.points))


@dataclass(frozen=True)
class Chart:
    """Curves over a common axis. For units see `Axis`."""

    name: str
    title: str
    x: str
    y: str
    lines: Sequence[Line]
    x_unit: str = ""
    y_unit: str = ""
    log_x: bool = False
    log_y: bool = False


STYLES = 8
"""The number of combinations of colour, dashes and marker."""
_MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",  # a circle
    "M-3.6-3.6h7.2v7.2h-7.2z",  # a square
    "M0-4.8L4.6 3.6h-9.2z",  # a triangle
    "M0-5.2L4.6 0L0 5.2L-4.6 0z",  # a diamond
)


def style_of(colour: int) -> int:
    """Return the index of the style of an operator's curves."""
    return colour % STYLES


def markers() -> Element:
    """Return the definitions of the markers, needed once per page."""
    shapes = [tag("path", id=f"marker{n}", d=d) for n, d in enumerate(_MARKERS)]
    return tag("svg", tag("defs", shapes), width="0", height="0", class_="markers", aria_hidden="true")


def marker(style: int, x: str, y: str) -> Element:
    """The marker of a style at a place."""
    return tag("use", href=f"#marker{style % len(_MARKERS)}", x=x, y=y)


def draw(chart: Chart) -> Element:
    """The chart as a figure, with its values as a table."""
    lines, (x, y) = chart.lines, axes(chart)
    label = f"{chart.title}: {chart.y} against {chart.x}, a curve each for {', '.join(line.name for line in lines)}"
    area = tag(
        "div",
        tag("svg", _grid(x, y), class_="grid", aria_hidden="true"),
        tag("svg", [part for line in lines for part in _curve(line, x, y)], **_STRETCHED, role="img", aria_label=label),
        tag("svg", [_points(line, x, y) for line in lines], class_="points", aria_hidden="true"),
        class_="area",
    )
    return tag(
        "figure",
        tag("figcaption", tag("h3", chart.title)),
        tag("ul", [_key(line) for line in lines if line in named(lines)], class_="legend"),
        tag("p", chart.y, class_="unit"),
        tag("div", _marks(y, upright=True), area, _marks(x, upright=False), class_="plot"),
        tag("p", chart.x, class_="unit x"),
        _table(chart),
        class_="chart",
        id=f"chart-{chart.name}",
    )


def axes(chart: Chart) -> tuple[Axis, Axis]:
    """Return the axes that show the whole chart."""
    points = [point for line in chart.lines for point in line.points]
    x = around(chart.x, [point[0] for point in points], chart.x_unit, chart.log_x)
    return x, around(chart.y, [value for point in points for value in point[1:]], chart.y_unit, chart.log_y, 0.06)


def data(chart: Chart) -> dict[str, Any]:
    """Return the data of a chart for the script."""
    x, y = axes(chart)
    return {
        **{
            name: {"low": a.low, "high": a.high, "unit": a.unit, "label": a.label, "log": a.log}
            for name, a in (("x", x), ("y", y))
        },
        "lines": [
            {"name": line.name, "colour": line.colour, "x": _short(line.points, 0), "y": _short(line.points, 1)}
            for line in chart.lines
        ],
    }


_STRETCHED: dict[str, Any] = {"class_": "curves", "viewBox": f"0 0 {SPAN} {SPAN}", "preserveAspectRatio": "none"}


def _short(points: Sequence[Point], which: int) -> list[float | None]:
    return [float(f"{p[which]:.6g}") if math.isfinite(p[which]) else None for p in points]


def _fewer(points: Sequence[Point]) -> list[Point]:
    """Average neighbouring points if there are too many."""
    together = -(-len(points) // POINTS)
    groups = (points[start : start + together] for start in range(0, len(points), max(together, 1)))
    return [
        (
            sum(p[0] for p in group) / len(group),
            sum(p[1] for p in group) / len(group),
            min(p[2] for p in group),
            max(p[3] for p in group),
        )
        for group in groups
    ]


def _curve(line: Line, x: Axis, y: Axis) -> list[Element]:
    """Draw the curve and the band between minimum and maximum."""
    kind = _kind(line)
    drawn = runs(line.points, x.log, y.log)
    placed = [[(_at(x, p[0]), _at(y, p[1], down=True)) for p in run] for run in drawn]
    path = "".join("M" + "L".join(f"{a} {b}" for a, b in run) for run in placed)
    parts = [tag("path", class_=f"line {kind}", d=path, data_line=line.colour)]
    if any(p[2] != p[3] for run in drawn for p in run) and not line.faint:
        edges = ([(p[0], p[3]) for p in run] + [(p[0], p[2]) for p in reversed(run)] for run in drawn)
        band = "".join("M" + "L".join(f"{_at(x, a)} {_at(y, b, down=True)}" for a, b in edge) + "Z" for edge in edges)
        parts.insert(0, tag("path", class_=f"band {kind}", d=band, data_line=line.colour))
    if line.faint and len(line.points) <= FEW:
        dots = "".join(f"M{a} {b}h0" for run in placed for a, b in run)
        parts.append(tag("path", class_=f"dots {kind}", d=dots, data_line=line.colour))
    return parts


def _kind(line: Line) -> str:
    return f"c{style_of(line.colour)}{' faint' if line.faint else ''}"


def _points(line: Line, x: Axis, y: Axis) -> Element:
    """Draw a marker for each point, if there are few."""
    shown = [] if line.faint or len(line.points) > FEW else [p for run in runs(line.points, x.log, y.log) for p in run]
    style = style_of(line.colour)
    places = [marker(style, _percent(x, point[0]), _percent(y, point[1], True)) for point in shown]
    return tag("g", places, class_=f"mark {_kind(line)}", data_line=line.colour)


def runs(points: Sequence[Point], log_x: bool, log_y: bool) -> list[list[Point]]:
    """Split the points at those that cannot be drawn."""
    found: list[list[Point]] = [[]]
    for point in points:
        if all(map(math.isfinite, point)) and (point[0] > 0 or not log_x) and (min(point[1:]) > 0 or not log_y):
            found[-1].append(point)
        elif found[-1]:
            found.append([])
    return [run for run in found if run]


def _at(axis: Axis, value: float, down: bool = False) -> str:
    share = axis.place(value)
    return f"{round(SPAN * (1 - share if down else share), 2):g}"


def _grid(x: Axis, y: Axis) -> list[Element]:
    upright = [tag("line", x1=_percent(x, v), x2=_percent(x, v), y1="0", y2="100%") for v in x.marks(_across(x))]
    return upright + [
        tag("line", x1="0", x2="100%", y1=_percent(y, v, True), y2=_percent(y, v, True)) for v in y.marks()
    ]


def _marks(axis: Axis, upright: bool) -> Element:
    if upright:
        words = [tag("text", axis.written(v), x="100%", y=_percent(axis, v, True), dy="0.32em") for v in axis.marks()]
    else:
        words = [tag("text", axis.written(v), x=_percent(axis, v), y="1em") for v in axis.marks(_across(axis))]
    return tag("svg", words, class_="ys" if upright else "xs", aria_hidden="true")


def _across(axis: Axis) -> int:
    """Return the number of ticks that fit below a chart on a phone."""
    return 4 if axis.unit else 6


def _percent(axis: Axis, value: float, down: bool = False) -> str:
    share = axis.place(value)
    return f"{100 * (1 - share if down else share):.2f}%"


def named(lines: Sequence[Line]) -> list[Line]:
    """Return the curves in the legend: all except faint ones of a listed colour."""
    bold = {line.colour for line in lines if not line.faint}
    return [line for line in lines if not line.faint or line.colour not in bold]


def _key(line: Line) -> Element:
    mark = None if line.faint else tag("g", marker(style_of(line.colour), "14", "6"), class_=f"mark {_kind(line)}")
    sample = [tag("path", class_=f"line {_kind(line)}", d="M0 6h28"), mark]
    return tag(
        "li", tag("svg", sample, class_="key", viewBox="0 0 28 12", aria_hidden="true"), line.name, data_key=line.colour
    )


def _table(chart: Chart) -> Element | None:
    """Return a table of the values of all curves that are not faint, by x; None if there are too many."""
    shown = [line for line in chart.lines if not line.faint and len(line.points) <= FEW]
    columns = [{point[0]: point[1] for point in line.points} for line in shown]
    x, y = axes(chart)
    head = tag("tr", tag("th", chart.x, scope="col"), [tag("th", line.name, scope="col") for line in shown])
    rows = [
        tag(
            "tr",
            tag("th", x.written(float(f"{at:.4g}")), scope="row"),
            [tag("td", _cell(column, at, y)) for column in columns],
        )
        for at in sorted({at for column in columns for at in column})
    ]
    if not rows:
        return None
    table = tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll", tabindex="0")
    return tag("details", tag("summary", "Values as a table"), table)


def _cell(column: dict[float, float], at: float, axis: Axis) -> str:
    value = column.get(at, math.nan)
    return axis.written(float(f"{value:.4g}")) if math.isfinite(value) else "–"
