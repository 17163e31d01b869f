"""Reading a picture as what it shows: boxes and frames with their places and texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
FONT = 12.0
WIDEST = 0.602
"""The width of a character of DejaVu Sans Mono and Menlo, the widest of the fonts named, over their size."""


@dataclass
class Shown:
    """A box, a frame, a column, or the page itself with the legend."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str = ""
    texts: list[tuple[str, float, float, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All that stands in it, apart from what stands in boxes inside."""
        return re.sub(r"\s+", "", "".join(text for *_, text in self.texts))

    def overflowing(self) -> list[str]:
        """The texts that do not fit into it."""
        texts = []
        for _, x, y, text in self.texts:
            right, top, bottom = x + len(text) * FONT * WIDEST, y - FONT, y + FONT / 3
            if right > self.x + self.width or x < self.x or top < self.y or bottom > self.y + self.height:
                texts.append(text)
        return texts


@dataclass
class Drawing:
    """A picture: the page, and what is on it."""

    page: Shown
    shown: list[Shown]

    @property
    def boxes(self) -> list[Shown]:
        """The operators and variables."""
        return [one for one in self.shown if one.title]


def read(text: str) -> Drawing:
    """The picture that an SVG of Graphviz's shows."""
    everything = ElementTree.fromstring(text).find(f"{SVG}g")
    assert everything is not None
    page = _box(everything)
    page.title = ""
    legend = everything.find(f"{SVG}g[@id='a_graph0']")
    page.texts = [] if legend is None else _box(legend).texts
    groups = [g for g in everything.findall(f"{SVG}g") if g.get("class", "").startswith(("cluster", "node"))]
    return Drawing(page, [box for box in map(_box, groups) if box.width])


def _box(group: ElementTree.Element) -> Shown:
    """A group of the picture: a node or a cluster."""
    shapes = [s.get("points") or s.get("d") or "" for s in group.iter() if s.tag.endswith(("polygon", "path"))]
    points = [(float(x), float(y)) for s in shapes for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", s)] or [(0.0, 0.0)]
    (left, right), (top, bottom) = ((min(each), max(each)) for each in zip(*points, strict=True))
    link = group.find(f".//{SVG}a")
    title = "" if link is None else link.get("{http://www.w3.org/1999/xlink}title", "").strip()
    kind = group.get("class", "").partition(" ")[2] or "column"
    shown = Shown(kind, left, top, right - left, bottom - top, title)
    for text in group.iter(f"{SVG}text"):
        content = "".join(text.itertext()).replace("\xa0", " ")
        shown.texts.append((text.get("fill", ""), float(text.attrib["x"]), float(text.attrib["y"]), content))
    return shown
