"""HTML elements as a tree, in which text is always escaped, and the files that pages are made of."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

Child = Element | str | None
_ASSETS = Path(__file__).parent / "assets"


def asset(name: str) -> str:
    """Return the text of a style sheet or template."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def tag(name: str, *children: Child | Iterable[Child], **attributes: object) -> Element:
    """An element. `class_` is written `class`, `aria_label` `aria-label`; attributes that are None are left out."""
    written = {_spelled(key): _plain(str(value)) for key, value in attributes.items() if value is not None}
    element = Element(name, written)
    for child in children:
        put(element, [child] if child is None or isinstance(child, (str, Element)) else child)
    return element


def put(element: Element, children: Iterable[Child]) -> None:
    """Append children to an element."""
    for child in children:
        if isinstance(child, Element):
            element.append(child)
        elif child and len(element):
            element[-1].tail = (element[-1].tail or "") + _plain(child)
        elif child:
            element.text = (element.text or "") + _plain(child)


def with_csv(table: Element, name: str) -> list[Element]:
    """A table, and a link that saves its values as NAME.csv."""
    text = io.StringIO()
    csv.writer(text).writerows([_value(cell) for cell in row] for row in table.iter("tr"))
    address = "data:text/csv;charset=utf-8;base64," + base64.b64encode(text.getvalue().encode()).decode()
    return [table, tag("a", "CSV", href=address, download=f"{name}.csv", class_="csv")]


def _value(cell: Element) -> str:
    """The text of a cell. A name from a file is no formula, for which a spreadsheet takes what begins with = or @."""
    text = " ".join(part.strip() for part in cell.itertext() if part.strip())
    return f"'{text}" if cell.tag == "th" and text[:1] in ("=", "@", "+", "-") else text


def as_html(element: Element) -> str:
    """The element as HTML."""
    return ElementTree.tostring(element, encoding="unicode", method="html")


def _spelled(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _plain(text: str) -> str:
    """Remove control characters and characters that change the writing direction."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
