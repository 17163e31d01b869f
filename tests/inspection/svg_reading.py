"""Reading a picture as what it shows: boxes with their places and texts, and arrows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
FONT = {"name": 14.0}
USUAL_FONT = 12.0
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
        for kind, x, y, text in self.texts:
            font = FONT.get(kind, USUAL_FONT)
            right, top, bottom = x + len(text) * font * WIDEST, y - font, y + font / 3
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
    """The picture that an SVG shows."""
    root = ElementTree.fromstring(text)
    page = Shown("page", 0, 0, float(root.attrib["width"]), float(root.attrib["height"]))
    drawing = Drawing(page, [])
    _read(root, page, 0, 0, drawing)
    return drawing


def _read(element: ElementTree.Element, around: Shown, x: float, y: float, drawing: Drawing) -> None:
    title = element.find(f"{SVG}title")
    for child in element:
        tag = child.tag.removeprefix(SVG)
        if tag == "g":
            shift = re.fullmatch(r"translate\(([\d.-]+) ([\d.-]+)\)", child.get("transform", "translate(0 0)"))
            assert shift is not None
            _read(child, around, x + float(shift[1]), y + float(shift[2]), drawing)
        elif tag == "rect" and "key" not in child.attrib["class"] and child.attrib["class"] != "page":
            place = x + float(child.get("x", 0)), y + float(child.get("y", 0))
            box = Shown(
                child.attrib["class"].removeprefix("box "),
                *place,
                float(child.attrib["width"]),
                float(child.attrib["height"]),
                title.text or "" if title is not None else "",
            )
            around.inside.append(box)
            around = box  # what follows in this group is inside it
        elif tag == "text":
            place = x + float(child.attrib["x"]), y + float(child.attrib["y"])
            around.texts.append((child.attrib["class"], *place, "".join(child.itertext())))
        elif tag == "path" and child.get("class") == "arrow":
            points = [tuple(map(float, p.split(","))) for p in re.findall(r"[\d.-]+,[\d.-]+", child.attrib["d"])]
            (a, b), (c, d) = points[0], points[-1]
            drawing.arrows.append(((x + a, y + b), (x + c, y + d)))
