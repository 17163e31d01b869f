"""Charts as SVG that a page can show at any width, and as data for the script that zooms into them.

The curves stand in a coordinate system of their own, 0 to 1000 both ways, that is stretched to the room there is;
marks and their words are placed by per cent, so that they keep their size. To zoom is to show a part of the curves.
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
"""How many points a curve is drawn with at most: more are brought together."""
FEW = 40
"""Up to how many points each has a dot, and a row of the table."""

Point = tuple[float, float, float, float]
"""x, y, and the least and the greatest y where there are several."""


@dataclass(frozen=True)
class Line:
    """A curve, of few enough points. `colour` counts the operators; what is `faint` stands back behind others."""

    name: str
    points: Sequence[Point]
    colour: int
    faint: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", _fewer(self.points))


@dataclass(frozen=True)
class Chart:
    """Curves over a common axis. `unit` is how values are written: "", "share", "seconds" or "count"."""

    name: str
    title: str
    x: str
    y: str
    lines: Sequence[Line]
    x_unit: str = ""
    y_unit: str = ""
    log: bool = False


def draw(chart: Chart) -> Element:
    """The chart as a figure, with its values as a table."""
    lines, (x, y) = chart.lines, axes(chart)
    label = f"{chart.title}: {chart.y} against {chart.x}, a curve each for {', '.join(line.name for line in lines)}"
    area = tag(
        "div",
        tag("svg", _grid(x, y), class_="grid", aria_hidden="true"),
        tag("svg", [part for line in lines for part in _curve(line, x, y)], **_STRETCHED, role="img", aria_label=label),
        class_="area",
    )
    return tag(
        "figure",
        tag("figcaption", tag("h3", chart.title)),
        tag("ul", [_key(line) for line in lines if line in _named(lines)], class_="legend"),
        tag("p", chart.y, class_="unit"),
        tag("div", _marks(y, upright=True), area, _marks(x, upright=False), class_="plot"),
        tag("p", chart.x, class_="unit x"),
        _table(chart),
        class_="chart",
        id=f"chart-{chart.name}",
    )


def axes(chart: Chart) -> tuple[Axis, Axis]:
    """The axes on which the whole chart can be seen."""
    points = [point for line in chart.lines for point in line.points]
    x = around(chart.x, [point[0] for point in points], chart.x_unit, chart.log)
    return x, around(chart.y, [value for point in points for value in point[1:]], chart.y_unit, chart.log, 0.06)


def data(chart: Chart) -> dict[str, Any]:
    """What the script has to know of a chart."""
    x, y = axes(chart)
    return {
        "log": chart.log,
        **{name: {"low": a.low, "high": a.high, "unit": a.unit, "label": a.label} for name, a in (("x", x), ("y", y))},
        "lines": [
            {"name": line.name, "colour": line.colour, "x": _short(line.points, 0), "y": _short(line.points, 1)}
            for line in chart.lines
        ],
    }


_STRETCHED: dict[str, Any] = {"class_": "curves", "viewBox": f"0 0 {SPAN} {SPAN}", "preserveAspectRatio": "none"}


def _short(points: Sequence[Point], which: int) -> list[float | None]:
    return [float(f"{p[which]:.6g}") if math.isfinite(p[which]) else None for p in points]


def _fewer(points: Sequence[Point]) -> list[Point]:
    """The means of neighbours, where there are more points than can be told apart."""
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
    """The band that several runs fill, the curve, and a dot for each point where there are few."""
    kind = f"c{line.colour % 8}{' faint' if line.faint else ''}"
    runs = _runs(line.points, x.log)
    placed = [[(_at(x, p[0]), _at(y, p[1], down=True)) for p in run] for run in runs]
    path = "".join("M" + "L".join(f"{a} {b}" for a, b in run) for run in placed)
    dots = "".join(f"M{a} {b}h0" for run in placed for a, b in run)
    parts = [tag("path", class_=f"line {kind}", d=path)]
    if any(p[2] != p[3] for run in runs for p in run) and not line.faint:
        edges = ([(p[0], p[3]) for p in run] + [(p[0], p[2]) for p in reversed(run)] for run in runs)
        band = "".join("M" + "L".join(f"{_at(x, a)} {_at(y, b, down=True)}" for a, b in edge) + "Z" for edge in edges)
        parts.insert(0, tag("path", class_=f"band {kind}", d=band))
    if len(line.points) <= FEW:
        parts.append(tag("path", class_=f"dots {kind}", d=dots))
    return parts


def _runs(points: Sequence[Point], log: bool) -> list[list[Point]]:
    """The points without those that cannot be drawn, where the curve is broken off."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if all(math.isfinite(value) and (value > 0 or not log) for value in point):
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


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
    """How many marks there is room for below a chart on a phone: fewer where units make their words longer."""
    return 4 if axis.unit else 6


def _percent(axis: Axis, value: float, down: bool = False) -> str:
    share = axis.place(value)
    return f"{100 * (1 - share if down else share):.2f}%"


def _named(lines: Sequence[Line]) -> list[Line]:
    """The curves that the legend names: not the faint ones behind others of their colour."""
    bold = {line.colour for line in lines if not line.faint}
    return [line for line in lines if not line.faint or line.colour not in bold]


def _key(line: Line) -> Element:
    kind = f"line c{line.colour % 8}{' faint' if line.faint else ''}"
    sample = tag("svg", tag("path", class_=kind, d="M0 6h28"), class_="key", viewBox="0 0 28 12", aria_hidden="true")
    return tag("li", sample, line.name)


def _table(chart: Chart) -> Element:
    """The values of every curve that is not faint, by x."""
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
        return tag("p", "There are too many values for a table; metrics.jsonl has them all.", class_="note")
    table = tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll", tabindex="0")
    return tag("details", tag("summary", "Values as a table"), table)


def _cell(column: dict[float, float], at: float, axis: Axis) -> str:
    value = column.get(at, math.nan)
    return axis.written(float(f"{value:.4g}")) if math.isfinite(value) else "–"
