"""The curves of a run as one image, for slides and chats: the charts of the page, drawn by Pillow."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from PIL import Image, ImageDraw, ImageFont

from app.report.charts import FEW, Chart, Line, axes, named, runs, style_of
from app.report.record import Record
from app.report.sections import curves

COLOURS = ("#0063a6", "#bd4b00", "#00775a", "#a03c78", "#7a5b00", "#4a4fc4", "#a3262a", "#4d5560")
"""The page's colours for a light background."""
DASHES: tuple[tuple[float, ...], ...] = ((), (8, 6), (2, 4), (12, 4, 2, 4))
"""Lengths that are drawn and left out in turn."""
WIDTH, HEIGHT = 460, 360
LEFT, TOP, RIGHT, BOTTOM = 62, 64, 16, 44
"""The margins of a chart around its curves, in pixels of the image."""
FINER = 2
"""Drawn this much larger and then reduced, which smooths the edges."""
INK, GRID = "#22272e", "#dfe3e8"

XY = tuple[float, float]


def curves_png(record: Record) -> bytes:
    """Loss and accuracy against epochs, and accuracy against time, side by side."""
    section = curves.section(record)
    charts = section.charts if section is not None else []
    image = Image.new("RGB", (WIDTH * max(len(charts), 1) * FINER, HEIGHT * FINER), "white")
    pen = ImageDraw.Draw(image)
    for place, chart in enumerate(charts):
        _Drawing(pen, chart, place * WIDTH).draw()
    picture = io.BytesIO()
    image.reduce(FINER).save(picture, "png")
    return picture.getvalue()


class _Drawing:
    """One chart. Positions are pixels of the image."""

    def __init__(self, pen: ImageDraw.ImageDraw, chart: Chart, left: int):
        self._pen, self._chart, self._left = pen, chart, left
        self._x, self._y = axes(chart)

    def draw(self) -> None:
        self._axes()
        for line in self._chart.lines:
            for run in runs(line.points, self._x.log, self._y.log):
                self._curve(line, [self._at(point[0], point[1]) for point in run])
        self._legend()

    def _at(self, x: float, y: float) -> XY:
        across, down = self._x.place(x), 1 - self._y.place(y)
        return (
            self._left + LEFT + across * (WIDTH - LEFT - RIGHT),
            TOP + down * (HEIGHT - TOP - BOTTOM),
        )

    def _axes(self) -> None:
        self._text((self._left + LEFT, 8), self._chart.title, 14, "la")
        self._text((self._left + LEFT, TOP - 8), self._chart.y, 11, "ls")
        self._text((self._left + WIDTH - RIGHT, HEIGHT - 6), self._chart.x, 11, "rs")
        for value in self._y.marks():
            at = self._at(self._x.low, value)
            self._line([at, self._at(self._x.high, value)], GRID, 1)
            self._text((at[0] - 6, at[1]), self._y.written(value), 10, "rm")
        for value in self._x.marks():
            at = self._at(value, self._y.low)
            self._line([at, self._at(value, self._y.high)], GRID, 1)
            self._text((at[0], at[1] + 6), self._x.written(value), 10, "ma")

    def _curve(self, line: Line, points: Sequence[XY], marked: bool = True) -> None:
        style = style_of(line.colour)
        colour = _faded(COLOURS[style]) if line.faint else COLOURS[style]
        for piece in _dashed(points, DASHES[style % len(DASHES)]):
            self._line(piece, colour, 1 if line.faint else 2)
        if marked and len(points) <= FEW and not line.faint:
            for point in points:
                self._marker(point, style)

    def _legend(self) -> None:
        at = float(self._left + LEFT)
        for line in named(self._chart.lines):
            name = line.name if len(line.name) <= 30 else f"{line.name[:12]}…{line.name[-17:]}"
            if at + 20 + self._font(11).getlength(name) / FINER > self._left + WIDTH:
                return  # the page names them all
            self._curve(line, [(at, 34), (at + 14, 34)], marked=False)
            self._marker((at + 7, 34), style_of(line.colour))
            at = self._text((at + 20, 34), name, 11, "lm") + 12

    def _marker(self, at: XY, style: int) -> None:
        sides = ((12, 0), (4, 45), (3, -90), (4, 0))[style % 4]  # circle, square, triangle, diamond
        corners = [math.radians(sides[1] + 360 * n / sides[0]) for n in range(sides[0])]
        shape = [((at[0] + 3.5 * math.cos(a)) * FINER, (at[1] + 3.5 * math.sin(a)) * FINER) for a in corners]
        self._pen.polygon(shape, fill=COLOURS[style])

    def _line(self, points: Sequence[XY], colour: str, width: int) -> None:
        self._pen.line([(x * FINER, y * FINER) for x, y in points], fill=colour, width=width * FINER, joint="curve")

    def _text(self, at: XY, text: str, size: int, anchor: str) -> float:
        """Write a text and return where it ends."""
        font = self._font(size)
        self._pen.text((at[0] * FINER, at[1] * FINER), text, INK, font, anchor)
        return at[0] + font.getlength(text) / FINER

    def _font(self, size: int) -> ImageFont.FreeTypeFont:
        font = ImageFont.load_default(size * FINER)
        assert isinstance(font, ImageFont.FreeTypeFont), "Pillow's packages have FreeType"
        return font


def _faded(colour: str) -> str:
    """A colour mixed with white."""
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{(part + 255) // 2:02x}" for part in parts)


def _dashed(points: Sequence[XY], dashes: Sequence[float]) -> Iterator[list[XY]]:
    """Yield the pieces of a curve that are drawn."""
    if not dashes:
        yield list(points)
        return
    which, left, piece = 0, dashes[0], list(points[:1])
    for start, end in pairwise(points):
        length, done = math.dist(start, end), 0.0
        while length - done > left:
            done += left
            at = (start[0] + (end[0] - start[0]) * done / length, start[1] + (end[1] - start[1]) * done / length)
            if which % 2 == 0:
                yield [*piece, at]
            which, piece = which + 1, [at]
            left = dashes[which % len(dashes)]
        left -= length - done
        piece.append(end)
    if which % 2 == 0:
        yield piece
