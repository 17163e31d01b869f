"""Where everything in a picture stands: Graphviz's library arranges the boxes of a column and draws the arrows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.errors import AppError
from app.inspection.picture.boxes import Box, Column

FONT = 12.0
CHARACTER = FONT * 0.61
"""How wide a character is, in the widest of the usual fonts whose characters are all equally wide."""
LINE, PADDING, GAP = 17.0, 10.0, 26.0
HEADING = 30.0
"""How much the name of a column takes."""

STRAIGHT = 20
"""How much more it matters that arrows of a main line run straight down than others."""
TALLEST = 3200.0
"""Where parts of a column that are not joined get taller together, they go on beside it."""

Point = tuple[float, float]


@dataclass
class Placed:
    """A box, with the corner of it that is top left, and its size."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    frames: list[Frame] = field(default_factory=list)


@dataclass
class Frame:
    """What runs inside an operator, at a place in its box, below the lines that say what it is."""

    lines: list[str]
    x: float
    y: float
    width: float
    height: float
    picture: Picture


@dataclass
class Picture:
    """Boxes and arrows in columns; `arrows` are the points of curves, three for each piece after the first point."""

    width: float
    height: float
    headings: list[tuple[float, str]]
    boxes: list[Placed]
    arrows: list[list[Point]]


def arranged(columns: Sequence[Column]) -> Picture:
    """The columns side by side."""
    picture = Picture(0.0, HEADING, [], [], [])
    for column in columns:
        left = x = picture.width + (GAP if picture.headings else 0.0)
        y = HEADING
        picture.width = x + CHARACTER * len(column.heading)
        for boxes, arrows in _connected(column):
            part = _laid_out(boxes, arrows)
            if y > HEADING and y + part.height > TALLEST:
                x, y = picture.width + GAP, HEADING
            for placed in part.boxes:
                placed.x, placed.y = placed.x + x, placed.y + y
            picture.boxes += part.boxes
            picture.arrows += [[(a + x, b + y) for a, b in points] for points in part.arrows]
            y += part.height
            picture.width, picture.height = max(picture.width, x + part.width), max(picture.height, y)
            y += GAP
        picture.headings.append((left, column.heading))
    return picture


def _connected(column: Column) -> Iterator[tuple[list[Box], list[tuple[Box, Box]]]]:
    """The parts of a column between which no arrow leads, in the order in which they begin."""
    group = {box: box for box in column.boxes}

    def root(box: Box) -> Box:
        while group[box] is not box:
            group[box] = group[group[box]]
            box = group[box]
        return box

    for a, b in column.arrows:
        group[root(b)] = root(a)
    for top in dict.fromkeys(map(root, column.boxes)):
        yield [b for b in column.boxes if root(b) is top], [(a, b) for a, b in column.arrows if root(a) is top]


def _size(box: Box) -> tuple[float, float, list[Frame]]:
    """The room that a box needs, and the frames in it: they stand beside each other, under its lines."""
    width = max(row.length for row in box.rows) * CHARACTER + 2 * PADDING
    height = len(box.rows) * LINE + PADDING
    frames: list[Frame] = []
    x, tallest = PADDING, 0.0
    for lines, columns in box.frames:
        picture = arranged(columns)
        wide = max(picture.width, *(len(line) * CHARACTER for line in lines)) + 2 * PADDING
        high = picture.height + len(lines) * LINE + 2 * PADDING
        frames.append(Frame(lines, x, height, wide, high, picture))
        x, tallest = x + wide + PADDING, max(tallest, high)
    if frames:
        width, height = max(width, x), height + tallest + PADDING
    return width, height, frames


def _laid_out(boxes: list[Box], arrows: list[tuple[Box, Box]]) -> Picture:
    """Boxes and arrows as Graphviz arranges them, which counts upwards from the bottom."""
    sizes = {box: _size(box) for box in boxes}
    numbers = {box: str(i) for i, box in enumerate(boxes)}
    graph = _graphviz().AGraph(directed=True, strict=False, nodesep=0.3, ranksep=0.35)
    for box, (width, height, _) in sizes.items():
        graph.add_node(numbers[box], shape="box", fixedsize="true", label="", width=width / 72, height=height / 72)
    main = _main_lines(boxes, arrows)
    for a, b in arrows:
        graph.add_edge(numbers[a], numbers[b], weight=STRAIGHT if (a, b) in main else 1)
    graph.layout("dot")
    left, bottom, right, top = map(float, graph.graph_attr["bb"].split(","))
    placed = []
    for box, (width, height, frames) in sizes.items():
        x, y = map(float, graph.get_node(numbers[box]).attr["pos"].split(","))
        placed.append(Placed(box, x - left - width / 2, top - y - height / 2, width, height, frames))
    curves = [[(x - left, top - y) for x, y in _points(edge.attr["pos"])] for edge in graph.edges()]
    return Picture(right - left, top - bottom, [], placed, curves)


def _main_lines(boxes: list[Box], arrows: list[tuple[Box, Box]]) -> set[tuple[Box, Box]]:
    """The arrows from operators that end the longest way to a box, and begin the longest way on."""
    above, below = dict.fromkeys(boxes, 0), dict.fromkeys(boxes, 0)
    order = {box: i for i, box in enumerate(boxes)}
    downwards = sorted(arrows, key=lambda arrow: order[arrow[1]])
    for a, b in downwards:
        above[b] = max(above[b], above[a] + 1)
    for a, b in sorted(arrows, key=lambda arrow: -order[arrow[0]]):
        below[a] = max(below[a], below[b] + 1)
    longest_to = {b: (a, b) for a, b in downwards if above[b] == above[a] + 1}
    longest_from = {a: (a, b) for a, b in downwards if below[a] == below[b] + 1}
    return {arrow for arrow in longest_to.values() if arrow[0].is_operator and arrow in longest_from.values()}


def _points(position: str) -> list[Point]:
    """The points of a curve as Graphviz writes them: `e,` and the tip, then those of the curve to it."""
    tip, *curve = position.removeprefix("e,").split()
    points = [tuple(map(float, word.split(","))) for word in (*curve, tip)]
    return [(x, y) for x, y in points]


def _graphviz() -> Any:
    try:
        import pygraphviz
    except ImportError as error:
        raise AppError(
            f"a picture needs the package pygraphviz, which brings Graphviz's library: pip install pygraphviz ({error})"
        ) from error
    return pygraphviz
