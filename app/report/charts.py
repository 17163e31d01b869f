"""Charts as SVG pictures that need no script and no other file.

A page shows them with its own colours, and a tooltip names the values at each place. A notebook shows them as images,
because it removes the SVG elements of outputs that it does not trust.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from app.report.axes import Axis, around
from app.report.markup import asset, tag, with_csv

POINTS = 400
"""The maximum number of points of a curve; more are averaged."""
FEW = 40
"""The maximum number of points with markers and table rows, and of tooltips."""
WIDTH, PLOT_HEIGHT = 340, 200
LEFT, RIGHT, TOP, BOTTOM = 50, 6, 26, 38
"""The margins around the curves. The legend is above them."""
_LETTER, _KEY, _ROW = 6.6, 34, 18
"""The width of a letter, of a key and its gaps, and the height of a row in the legend."""
_LONGEST_NAME = 36

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
    log_y: bool = False

    @property
    def description(self) -> str:
        """A sentence for readers who do not see the chart."""
        names = ", ".join(line.name for line in self.lines)
        return f"{self.title}: {self.y or 'values'} against {self.x}, a curve each for {names}"


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


def marker(style: int, x: float, y: float) -> Element:
    """The marker of a style at a place."""
    return tag("path", d=_MARKERS[style % len(_MARKERS)], transform=f"translate({x:g} {y:g})")


def draw(chart: Chart) -> Element:
    """The chart as a figure, with its values as a table."""
    heading = tag("figcaption", tag("h3", chart.title))
    return tag("figure", heading, picture(chart), _table(chart), class_="chart", id=f"chart-{chart.name}")


def image(chart: Chart) -> Element:
    """The chart as an image that stands alone, in colours for a light background."""
    svg = picture(chart)
    svg.set("xmlns", "http://www.w3.org/2000/svg")
    svg.set("width", str(WIDTH))
    svg.insert(0, tag("rect", width="100%", height="100%", fill="#ffffff"))
    svg.insert(0, tag("style", _style()))
    address = "data:image/svg+xml;base64," + base64.b64encode(ElementTree.tostring(svg)).decode()
    heading = tag("figcaption", tag("h3", chart.title))
    shown = tag("img", src=address, alt=chart.description, class_="picture")
    return tag("figure", heading, shown, class_="chart", id=f"chart-{chart.name}")


@cache
def _style() -> str:
    """The styles of a picture, with the light ones of its colours."""
    return f":root {{ color-scheme: light; }} {asset('colours.css')} {asset('chart.css')}"


def picture(chart: Chart) -> Element:
    """The chart as one SVG element."""
    lines, (x, y) = chart.lines, axes(chart)
    keys = _legend(named(lines))
    top = _ROW * len(keys) + TOP
    plot = _Plot(x, y, top)
    height = top + PLOT_HEIGHT + BOTTOM
    parts = [
        *(part for row, line in enumerate(keys) for part in _legend_row(line, row)),
        tag("text", chart.y, x=LEFT, y=top - 9),
        *plot.grid(),
        *(part for line in lines for part in plot.curve(line)),
        *(plot.points(line) for line in lines),
        tag("text", chart.x, x=WIDTH - RIGHT, y=height - 6, class_="end"),
        *plot.tooltips(chart),
    ]
    view = f"0 0 {WIDTH} {height}"
    return tag("svg", parts, class_="opsmith picture", viewBox=view, role="img", aria_label=chart.description)


def axes(chart: Chart) -> tuple[Axis, Axis]:
    """Return the axes that show the whole chart."""
    points = [point for line in chart.lines for point in line.points]
    x = around(chart.x, [point[0] for point in points], chart.x_unit)
    return x, around(chart.y, [value for point in points for value in point[1:]], chart.y_unit, chart.log_y, 0.06)


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


@dataclass(frozen=True)
class _Plot:
    """The part of a picture between the axes."""

    x: Axis
    y: Axis
    top: float

    def across(self, value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * self.x.place(value), 1)

    def down(self, value: float) -> float:
        return round(self.top + PLOT_HEIGHT * (1 - self.y.place(value)), 1)

    def grid(self) -> Iterator[Element]:
        """Lines at round values, with these values beside them."""
        bottom, right = self.top + PLOT_HEIGHT, WIDTH - RIGHT
        for value in self.x.marks(4 if self.x.unit else 6):
            at = self.across(value)
            yield tag("line", x1=at, x2=at, y1=self.top, y2=bottom, class_="grid")
            text = self.x.written(value)
            is_cut = at + _LETTER * len(text) / 2 > WIDTH
            yield tag("text", text, x=WIDTH if is_cut else at, y=bottom + 17, class_="end" if is_cut else "middle")
        for value in self.y.marks():
            at = self.down(value)
            yield tag("line", x1=LEFT, x2=right, y1=at, y2=at, class_="grid")
            yield tag("text", self.y.written(value), x=LEFT - 7, y=at + 4, class_="end")
        yield tag("path", d=f"M{LEFT} {self.top}V{bottom}H{right}", class_="edge")

    def curve(self, line: Line) -> Iterator[Element]:
        """The curve, and the band between minimum and maximum."""
        kind = _kind(line)
        drawn = runs(line.points, self.y.log)
        if any(p[2] != p[3] for run in drawn for p in run) and not line.faint:
            edges = ([(p[0], p[3]) for p in run] + [(p[0], p[2]) for p in reversed(run)] for run in drawn)
            yield tag("path", class_=f"band {kind}", d="".join(f"{self._path(edge)}Z" for edge in edges))
        yield tag("path", class_=f"line {kind}", d="".join(self._path([p[:2] for p in run]) for run in drawn))
        if line.faint and len(line.points) <= FEW:
            dots = "".join(f"M{self.across(p[0])} {self.down(p[1])}h0" for run in drawn for p in run)
            yield tag("path", class_=f"dots {kind}", d=dots)

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{self.across(a)} {self.down(b)}" for a, b in points)

    def points(self, line: Line) -> Element | None:
        """A marker for each point, if there are few."""
        if line.faint or len(line.points) > FEW:
            return None
        shown = [point for run in runs(line.points, self.y.log) for point in run]
        places = [marker(style_of(line.colour), self.across(p[0]), self.down(p[1])) for p in shown]
        return tag("g", places, class_=f"mark {_kind(line)}")

    def tooltips(self, chart: Chart) -> Iterator[Element]:
        """Upright strips over the plot, each with the values of the curves in it as its title."""
        values = [
            (self.across(p[0]), p, line) for line in chart.lines for run in runs(line.points, self.y.log) for p in run
        ]
        stops = sorted({at for at, _, line in values if not line.faint} or {at for at, _, _ in values})
        if len(stops) > FEW:
            step = (WIDTH - LEFT - RIGHT) / FEW
            stops = [LEFT + step * (n + 0.5) for n in range(FEW)]
        edges = [LEFT, *(round((a + b) / 2, 1) for a, b in pairwise(stops)), WIDTH - RIGHT]
        for stop, left, right in zip(stops, edges, edges[1:], strict=False):
            nearest: dict[str, tuple[float, Point]] = {}
            for at, point, line in values:
                if left <= at <= right and abs(at - stop) < nearest.get(line.name, (math.inf,))[0]:
                    nearest[line.name] = abs(at - stop), point
            if not nearest:
                continue
            place = min(nearest.values())[1][0]
            rows = [f"{name} {self.y.written(_short(point[1]))}" for name, (_, point) in nearest.items()]
            title = tag("title", "\n".join([f"{chart.x} {self.x.written(_short(place))}", *rows]))
            size = {"x": left, "y": self.top, "width": f"{right - left:g}", "height": PLOT_HEIGHT}
            yield tag("rect", title, **size, class_="tooltip")


def _kind(line: Line) -> str:
    return f"c{style_of(line.colour)}{' faint' if line.faint else ''}"


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def runs(points: Sequence[Point], log_y: bool) -> list[list[Point]]:
    """Split the points at those that cannot be drawn."""
    pieces: list[list[Point]] = [[]]
    for point in points:
        if all(map(math.isfinite, point)) and (min(point[1:]) > 0 or not log_y):
            pieces[-1].append(point)
        elif pieces[-1]:
            pieces.append([])
    return [run for run in pieces if run]


def named(lines: Sequence[Line]) -> list[Line]:
    """Return the curves in the legend: all except faint ones of a listed colour."""
    bold = {line.colour for line in lines if not line.faint}
    return [line for line in lines if not line.faint or line.colour not in bold]


def _legend(lines: Sequence[Line]) -> list[list[tuple[float, Line]]]:
    """Rows of the legend: lines, with where each begins."""
    rows: list[list[tuple[float, Line]]] = []
    at = math.inf
    for line in lines:
        width = _KEY + _LETTER * min(len(line.name), _LONGEST_NAME) + 12
        if at + width > WIDTH:
            rows.append([])
            at = LEFT
        rows[-1].append((at, line))
        at += width
    return rows


def _legend_row(keys: Sequence[tuple[float, Line]], row: int) -> Iterator[Element]:
    y = _ROW * row + 9
    for x, line in keys:
        yield tag("path", class_=f"line {_kind(line)}", d=f"M{x:g} {y}h28")
        if not line.faint:
            yield tag("g", marker(style_of(line.colour), x + 14, y), class_=f"mark {_kind(line)}")
        name = line.name
        if len(name) > _LONGEST_NAME:
            name = f"{name[:14]}…{name[-21:]}"
        yield tag("text", name, tag("title", line.name), x=f"{x + _KEY:g}", y=y + 4, class_="name")


def _table(chart: Chart) -> Element | None:
    """Return a table of the values of all curves that are not faint, by x; None if there are too many."""
    shown = [line for line in chart.lines if not line.faint and len(line.points) <= FEW]
    columns = [{point[0]: point[1] for point in line.points} for line in shown]
    x, y = axes(chart)
    head = tag("tr", tag("th", chart.x, scope="col"), [tag("th", line.name, scope="col") for line in shown])
    rows = [
        tag(
            "tr",
            tag("th", x.written(_short(at)), scope="row"),
            [tag("td", _cell(column, at, y)) for column in columns],
        )
        for at in sorted({at for column in columns for at in column})
    ]
    if not rows:
        return None
    table = tag("table", tag("thead", head), tag("tbody", rows))
    content = tag("div", with_csv(table, chart.name), class_="scroll", tabindex="0")
    return tag("details", tag("summary", "Values as a table"), content)


def _cell(column: dict[float, float], at: float, axis: Axis) -> str:
    value = column.get(at, math.nan)
    return axis.written(_short(value)) if math.isfinite(value) else "–"
