"""A Program as an SVG: laid out by Graphviz, with a cluster for each column and for the bodies of an operator.

The colours of boxes are explained in a legend. On a dark page each colour is replaced by a dark one.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from itertools import count, pairwise
from typing import Any

from app.errors import AppError
from app.graph.program import Program
from app.inspection.picture.boxes import CUSTOM, DATA, GIVEN, KEPT, OPERATOR, PARAMETER, Box, Column, Row, columns_of
from app.inspection.picture.wording import USUAL
from app.printing import escaped

PAGE, INK, PALE, LINE, AWAY, PLACE, CUSTOM_LINE = (
    "#ffffff", "#1d2430", "#5b6472", "#8a8f98", "#1f5fa8", "#8a5a00", "#c98a00",
)  # fmt: skip
FILL = {
    DATA: "#d8f0dc",
    PARAMETER: "#e9e0f7",
    KEPT: "#f3edfb",
    GIVEN: PAGE,
    OPERATOR: "#eef2f7",
    CUSTOM: "#ffe8b3",
}
DARK = {
    PAGE: "#14181f", INK: "#e4e8ee", PALE: "#9aa4b2", LINE: "#6b7480", AWAY: "#7db4f0", PLACE: "#e0b050",
    CUSTOM_LINE: "#d9a020", FILL[DATA]: "#1f3d27", FILL[PARAMETER]: "#372b52", FILL[KEPT]: "#2a2440",
    FILL[OPERATOR]: "#222a36", FILL[CUSTOM]: "#4a3a10",
}  # fmt: skip
"""The colours on a dark page."""
TEXT = {"title": INK, "output": INK, "spec": PALE, "setting": PALE, "away": AWAY, "place": PLACE}
"""The colours of the kinds of lines."""

LEGEND = {
    DATA: "data that is fed",
    PARAMETER: "parameter",
    KEPT: "other variable that persists",
    GIVEN: "other variable",
    OPERATOR: "operator, with its outputs",
    CUSTOM: "custom operator",
}
"""The meanings of the colours."""
FAR = "← made elsewhere in the picture"
SHAPES = f"[-1, 10] is {USUAL}, any number of rows by 10"

FONT = "Courier"
"""A font whose widths Graphviz knows; the picture uses others with the same widths."""
FONTS = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
STACKED = 10
"""Unconnected parts of a column are stacked up to this many boxes; further parts are put beside them."""
SIZE, ROOM = 12, 13
"""The font size, and the one that Graphviz lays out."""


def draw(program: Program, title: str) -> str:
    """The picture of a Program, as the text of an SVG file."""
    columns = columns_of(program.global_block())
    drawn = _Graph(title, columns).svg()
    start = re.search(r"<svg.*?>", drawn, re.DOTALL)
    assert start is not None
    size = re.sub(r'"([\d.]+)pt"', r'"\1"', start[0])
    return f"{size}\n<style>{_style()}</style>{drawn[start.end() :]}"


def _style() -> str:
    dark = "".join(f'[fill="{a}"] {{ fill: {b}; }} [stroke="{a}"] {{ stroke: {b}; }}\n' for a, b in DARK.items())
    text = f"text {{ font: {SIZE}px {FONTS}; white-space: pre; }}\n[font-weight] {{ font-weight: 700; }}\n"
    return f"{text}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


class _Graph:
    """The graph of a picture, for Graphviz."""

    def __init__(self, title: str, columns: Sequence[Column]):
        shown = {box.kind for box in _everywhere(columns)}
        self.graph = _graphviz().AGraph(
            directed=True, strict=False, compound=True, nodesep=0.25, ranksep=0.3, bgcolor=PAGE, fontname=FONT,
            labelloc="t", labeljust="l", label=_legend(title, shown), tooltip=_plain(title),
        )  # fmt: skip
        self.graph.node_attr.update(
            shape="box", fontname=FONT, fontsize=ROOM, color=LINE, height=0.2, margin="0.12,0.06"
        )
        self.graph.edge_attr.update(color=LINE, arrowsize=0.7, tooltip=" ")
        self.numbers = count()
        self._columns(self.graph, columns)

    def svg(self) -> str:
        """The picture as Graphviz draws it."""
        with _without_warnings_of_fonts():
            drawn: bytes = self.graph.draw(format="svg", prog="dot")
        return drawn.decode()

    def _columns(self, around: Any, columns: Sequence[Column]) -> list[str]:
        """Add the columns side by side; gives the nodes of all their boxes."""
        nodes: list[str] = []
        for column in columns:
            inside = self._cluster(around, f"<B>{escape(column.heading)}</B>", PALE, peripheries=0)
            ends = {box: self._box(inside, box) for box in column.boxes}
            for a, b in column.arrows:
                tail, head = ends[a], ends[b]
                clusters = {end: name for end, name in (("ltail", tail[2]), ("lhead", head[2])) if name}
                self.graph.add_edge(tail[1], head[0], minlen=1 + len(clusters), **clusters)
            stacked = 0
            for above, below in pairwise(_connected(column)):
                stacked += len(above)
                if stacked < STACKED:
                    self.graph.add_edge(ends[above[-1]][1], ends[below[0]][0], style="invis")
                else:
                    stacked = 0
            nodes += [end for box in column.boxes for end in ends[box][:2]]
        return nodes

    def _box(self, around: Any, box: Box) -> tuple[str, str, str]:
        """Add a box; gives the nodes for arrows to it and from it, and the name of its cluster, if any."""
        fill, line, width = FILL[box.kind], CUSTOM_LINE if box.kind == CUSTOM else LINE, 2 if box.kind == CUSTOM else 1
        style = "filled" if box.is_operator else "filled,rounded"
        look = {"fillcolor": fill, "color": line, "penwidth": width, "style": style, "tooltip": _plain(box.title)}
        if not box.frames:
            name = f"node{next(self.numbers)}"
            around.add_node(name, label=_label(box.rows), **{"class": box.kind}, **look)
            return name, name, ""
        inside = self._cluster(around, _lines(box.rows), INK, **{"class": box.kind}, **look)
        top, bottom = self._point(inside), self._point(inside)
        self.graph.get_node(top).attr["ordering"] = "out"
        for lines, columns in box.frames:
            rows = [Row("output" if place else "title", line) for place, line in enumerate(lines)]
            frame = self._cluster(inside, _lines(rows), INK, style="dashed,filled", fillcolor=PAGE, color=LINE, **FRAME)
            for node in [self._point(frame), *self._columns(frame, columns)]:
                self.graph.add_edge(top, node, style="invis")
                self.graph.add_edge(node, bottom, style="invis")
        return top, bottom, str(inside.name)

    def _point(self, around: Any) -> str:
        name = f"point{next(self.numbers)}"
        around.add_node(name, shape="point", style="invis", width=0.01, height=0.01, label="")
        return name

    def _cluster(self, around: Any, lines: str, ink: str, **look: Any) -> Any:
        label = f'<<FONT COLOR="{ink}">{lines}</FONT>>'
        usual = {"labeljust": "l", "fontname": FONT, "fontsize": ROOM, "margin": 10, "peripheries": 1, "tooltip": " "}
        return around.add_subgraph([], f"cluster{next(self.numbers)}", label=label, **{**usual, **look})


FRAME = {"class": "frame"}


def _everywhere(columns: Sequence[Column]) -> Iterator[Box]:
    """All boxes, including those inside operators."""
    for box in (box for column in columns for box in column.boxes):
        yield box
        for _, inside in box.frames:
            yield from _everywhere(inside)


def _label(rows: Sequence[Row]) -> str:
    return f"<{_lines(rows)}>"


def _lines(rows: Sequence[Row]) -> str:
    return "".join(f'{_line(row)}<BR ALIGN="LEFT"/>' for row in rows)


def _line(row: Row) -> str:
    text = _colored(row.text, TEXT[row.kind])
    more = _colored(" " + row.more, PALE) if row.more else ""
    return (f"<B>{text}</B>" if row.kind == "title" else text) + more


def _colored(text: str, color: str) -> str:
    return f'<FONT COLOR="{color}">{escape(escaped(text)).replace(" ", "&#160;")}</FONT>'


def _plain(text: str) -> str:
    """Text for an attribute, in which Graphviz reads entities and escapes."""
    return escape(escaped(text)).replace("\\", "\\\\")


def _legend(title: str, shown: set[str]) -> str:
    """The title, and a legend of the colours that are used."""
    cells = []
    for kind, text in LEGEND.items():
        if kind in shown:
            line = CUSTOM_LINE if kind == CUSTOM else LINE
            cells.append(f'<TD BGCOLOR="{FILL[kind]}" COLOR="{line}" BORDER="1">&#160;&#160;</TD>')
            cells.append(f'<TD ALIGN="LEFT">{_colored(text, PALE)}</TD>')
    rows = ["".join(cells[i : i + 8]) for i in range(0, len(cells), 8)]
    notes = "".join(
        f'<TR><TD ALIGN="LEFT" COLSPAN="8">{_colored(text, color)}</TD></TR>'
        for text, color in ((FAR, AWAY), (SHAPES, PALE))
    )
    head = f'<TR><TD ALIGN="LEFT" COLSPAN="8"><B>{_colored(title, INK)}</B></TD></TR>'
    table = head + "".join(f"<TR>{row}</TR>" for row in rows) + notes
    return f'<<FONT POINT-SIZE="{ROOM}"><TABLE BORDER="0" CELLBORDER="0" CELLSPACING="3">{table}</TABLE></FONT>>'


def _connected(column: Column) -> list[list[Box]]:
    """The connected parts of a column, in order."""
    group = {box: [box] for box in column.boxes}
    for a, b in column.arrows:
        if group[a] is not group[b]:
            together = group[a] + group[b]
            group.update(dict.fromkeys(together, together))
    parts = {id(part): part for part in (group[box] for box in column.boxes)}
    return [[box for box in column.boxes if group[box] is part] for part in parts.values()]


@contextmanager
def _without_warnings_of_fonts() -> Iterator[None]:
    """Remove the warnings of pygraphviz's own fontconfig about newer configuration files from standard error."""
    with tempfile.TemporaryFile() as warnings_file:
        sys.stderr.flush()
        before = os.dup(2)
        os.dup2(warnings_file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            warnings_file.seek(0)
            lines = warnings_file.read().decode(errors="replace").splitlines(keepends=True)
            sys.stderr.write("".join(line for line in lines if not line.startswith("Fontconfig warning")))


def _graphviz() -> Any:
    try:
        import pygraphviz
    except ImportError as error:
        raise AppError(
            f"a picture needs the package pygraphviz, which brings Graphviz's library: pip install pygraphviz ({error})"
        ) from error
    return pygraphviz
