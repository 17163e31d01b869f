"""A Program as an SVG that can be read on a white page: colours say what a box is, and a legend says the colours."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from app.graph.program import Program
from app.inspection.picture.boxes import CUSTOM, DATA, GIVEN, KEPT, OPERATOR, PARAMETER, columns_of
from app.inspection.picture.layout import CHARACTER, FONT, HEADING, LINE, PADDING, Frame, Picture, Placed, arranged
from app.inspection.picture.wording import USUAL

MARGIN = 16.0
NARROWEST = 560.0
"""The least width of a picture, in which a title and the lines of a legend have room."""

LEGEND = {
    DATA: "data that is fed",
    PARAMETER: "parameter",
    KEPT: "other variable that persists",
    GIVEN: "other variable",
    OPERATOR: "operator, with its outputs",
    CUSTOM: "custom operator",
}
"""What the colours mean."""
AWAY = "← made elsewhere in the picture"
SHAPES = f"[-1, 10] is {USUAL}, any number of rows by 10"
KEY = 22.0
BOLD = 14 * 0.61
"""The width of a character of the title."""

STYLE = f"""
text {{ font: {FONT:g}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1d2430; }}
text {{ white-space: pre; }}
.name, .heading, .title {{ font-weight: 700; }}
.name {{ font-size: 14px; }}
.heading {{ fill: #5b6472; }}
.spec, .setting, .note {{ fill: #5b6472; }}
.away {{ fill: #1f5fa8; }}
.place {{ fill: #8a5a00; }}
.box {{ stroke: #8a8f98; stroke-width: 1; }}
.data {{ fill: #d8f0dc; }}
.parameter {{ fill: #e9e0f7; }}
.kept {{ fill: #f3edfb; }}
.given {{ fill: #ffffff; }}
.operator {{ fill: #eef2f7; }}
.custom {{ fill: #ffe8b3; stroke: #c98a00; stroke-width: 2; }}
.frame {{ fill: #ffffff; stroke: #8a8f98; stroke-dasharray: 5 3; }}
.arrow {{ fill: none; stroke: #8a8f98; stroke-width: 1.4; marker-end: url(#tip); }}
"""


def draw(program: Program, title: str) -> str:
    """The picture of a Program, as the text of an SVG file."""
    picture = arranged(columns_of(program.global_block()))
    width = max(picture.width, NARROWEST, BOLD * len(title))
    legend, top = _legend({placed.box.kind for placed in _everywhere(picture)}, width)
    sizes = _f(width + 2 * MARGIN), _f(top + picture.height + MARGIN)
    size = f'width="{sizes[0]}" height="{sizes[1]}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {" ".join(sizes)}" {size} '
        'role="img" aria-labelledby="title">',
        f'<title id="title">{escape(title)}</title>',
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,1 L10,5 L0,9 z" fill="#8a8f98"/></marker></defs>',
        f'<rect class="page" {size} fill="#ffffff"/>',
        f'<text class="name" x="{_f(MARGIN)}" y="26">{escape(title)}</text>',
        *legend,
        f'<g transform="translate({_f(MARGIN)} {_f(top)})">',
        *_picture(picture),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _everywhere(picture: Picture) -> Iterator[Placed]:
    """All boxes, those in frames among them."""
    for placed in picture.boxes:
        yield placed
        for frame in placed.frames:
            yield from _everywhere(frame.picture)


def _legend(shown: set[str], width: float) -> tuple[list[str], float]:
    """What the colours that are used mean, and where the picture begins below that."""
    lines, x, y = [], MARGIN, 48.0
    said = [(kind, text) for kind, text in LEGEND.items() if kind in shown] + [("away", AWAY), ("spec", SHAPES)]
    for kind, text in said:
        key = KEY if kind in shown else 0.0
        needed = key + CHARACTER * len(text)
        if x > MARGIN and x + needed > width + MARGIN:
            x, y = MARGIN, y + LINE
        if key:
            lines.append(f'<rect class="box key {kind}" x="{_f(x)}" y="{_f(y - 10)}" width="16" height="12" rx="3"/>')
        lines.append(f'<text class="{"note" if key else kind}" x="{_f(x + key)}" y="{_f(y)}">{escape(text)}</text>')
        x += needed + KEY
    return lines, y + 14


def _picture(picture: Picture) -> Iterator[str]:
    for x, heading in picture.headings:
        yield f'<text class="heading" x="{_f(x)}" y="{_f(HEADING - 13)}">{escape(heading)}</text>'
    for points in picture.arrows:
        yield f'<path class="arrow" d="{_curve(points)}"/>'
    for placed in picture.boxes:
        yield from _box(placed)


def _curve(points: list[tuple[float, float]]) -> str:
    """A path through the pieces of a curve, with a straight line to the tip."""
    first, *middle, tip = (f"{_f(x)},{_f(y)}" for x, y in points)
    return f"M{first} C{' '.join(middle)} L{tip}"


def _box(placed: Placed) -> Iterator[str]:
    box = placed.box
    yield f'<g class="{"step" if box.is_operator else "variable"}">'
    yield f"<title>{escape(box.title)}</title>"
    radius = 3 if box.is_operator else 11
    yield (
        f'<rect class="box {box.kind}" x="{_f(placed.x)}" y="{_f(placed.y)}" '
        f'width="{_f(placed.width)}" height="{_f(placed.height)}" rx="{radius}"/>'
    )
    for number, row in enumerate(box.rows):
        y = placed.y + PADDING / 2 + LINE * (number + 0.72)
        more = f'<tspan class="spec"> {escape(row.more)}</tspan>' if row.more else ""
        yield f'<text class="{row.kind}" x="{_f(placed.x + PADDING)}" y="{_f(y)}">{escape(row.text)}{more}</text>'
    for frame in placed.frames:
        yield from _frame(frame, placed)
    yield "</g>"


def _frame(frame: Frame, within: Placed) -> Iterator[str]:
    yield f'<g transform="translate({_f(within.x + frame.x)} {_f(within.y + frame.y)})">'
    yield f'<rect class="frame" width="{_f(frame.width)}" height="{_f(frame.height)}" rx="3"/>'
    for number, line in enumerate(frame.lines):
        y = PADDING / 2 + LINE * (number + 0.72)
        kind = "output" if number else "title"
        yield f'<text class="{kind}" x="{_f(PADDING)}" y="{_f(y)}">{escape(line)}</text>'
    yield f'<g transform="translate({_f(PADDING)} {_f(PADDING + LINE * len(frame.lines))})">'
    yield from _picture(frame.picture)
    yield "</g></g>"


def _f(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
