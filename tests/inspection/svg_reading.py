"""Reading a picture as what it shows: boxes with their places and texts, and arrows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
FONT = 12.0
WIDEST = 0.602
"""The width of a character of DejaVu Sans Mono and Menlo, the widest of the fonts named, over their size."""


@dataclass
class Shown:
    """A box or a frame."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str = ""
    texts: list[tuple[str, float, float, str]] = field(default_factory=list)
    inside: list[Shown] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All that stands in it, apart from what stands in boxes inside."""
        return re.sub(r"\s+", "", "".join(text for *_, text in self.texts))

    def holds(self, other: Shown) -> bool:
        return (
            self.x <= other.x
            and self.y <= other.y
            and other.x + other.width <= self.x + self.width
            and other.y + other.height <= self.y + self.height
        )

    def meets(self, other: Shown) -> bool:
        apart_x = self.x + self.width <= other.x or other.x + other.width <= self.x
        apart_y = self.y + self.height <= other.y or other.y + other.height <= self.y
        return not (apart_x or apart_y)

    def everything(self) -> Iterator[Shown]:
        yield self
        for one in self.inside:
            yield from one.everything()

    def overflowing(self) -> list[str]:
        """The texts that do not fit into it."""
        found = []
        for _, x, y, text in self.texts:
            right, top, bottom = x + len(text) * FONT * WIDEST, y - FONT, y + FONT / 3
            if right > self.x + self.width or x < self.x or top < self.y or bottom > self.y + self.height:
                found.append(text)
        return found


@dataclass
class Drawing:
    """A picture: the page with what is on it, and the beginning and the tip of each arrow."""

    page: Shown
    arrows: list[tuple[tuple[float, float], tuple[float, float]]]

    @property
    def boxes(self) -> list[Shown]:
        return [one for one in self.page.everything() if one.title]


def read(text: str) -> Drawing:
    """The picture that an SVG of Graphviz's shows."""
    root = ElementTree.fromstring(text)
    everything = root.find(f"{SVG}g")
    assert everything is not None
    found = [(group.get("class", ""), _box(group)) for group in everything.findall(f"{SVG}g")]
    page = _box(everything)
    page.kind, page.title = "page", ""
    legend = everything.find(f"{SVG}g[@id='a_graph0']")
    if legend is not None:
        page.texts = _box(legend).texts
    boxes = [box for kind, box in found if kind.startswith(("cluster", "node")) and box.width]
    for box in sorted(boxes, key=lambda box: -box.width * box.height):
        around = page
        while inner := [b for b in around.inside if b.holds(box)]:
            around = inner[0]
        around.inside.append(box)
    return Drawing(page, [_ends(g) for g in everything.findall(f"{SVG}g[@class='edge']") if _points(g)])


def _points(group: ElementTree.Element) -> list[tuple[float, float]]:
    """The corners of what is drawn in a group."""
    shapes = [s.get("points") or s.get("d") or "" for s in group.iter() if s.tag.endswith(("polygon", "path"))]
    return [(float(x), float(y)) for s in shapes for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", s)]


def _box(group: ElementTree.Element) -> Shown:
    """A group of the picture: a node or a cluster."""
    points = _points(group) or [(0.0, 0.0)]
    (left, right), (top, bottom) = ((min(each), max(each)) for each in zip(*points, strict=True))
    link = group.find(f".//{SVG}a")
    title = "" if link is None else link.get("{http://www.w3.org/1999/xlink}title", "").strip()
    kind = group.get("class", "").partition(" ")[2] or "column"
    shown = Shown(kind, left, top, right - left, bottom - top, title)
    for text in group.iter(f"{SVG}text"):
        words = "".join(text.itertext()).replace("\xa0", " ")
        shown.texts.append((text.get("fill", ""), float(text.attrib["x"]), float(text.attrib["y"]), words))
    return shown


def _ends(group: ElementTree.Element) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where an arrow begins, and its tip: the corner of its head that is farthest from the end of its line."""
    line = next(group.iter(f"{SVG}path")).attrib["d"]
    points = [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", line)]
    head = next(group.iter(f"{SVG}polygon")).attrib["points"]
    corners = [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", head)]
    end = points[-1]
    return points[0], max(corners, key=lambda p: (p[0] - end[0]) ** 2 + (p[1] - end[1]) ** 2)
