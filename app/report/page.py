"""The report as one self-contained page: it loads nothing and has no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from string import Template
from xml.etree.ElementTree import Element

from app.report.markup import as_html, asset, tag
from app.report.record import Record
from app.report.sections import costs, curves, failures, mistakes, operators, result, settings, units
from app.run.layers import layer_names
from app.run.wording import listed

MARK = '<body class="opsmith">'
"""By which pages of opsmith are known."""
SECTIONS = (failures, curves, operators, costs, mistakes, units, settings)
"""The sections after the verdict, in order; each decides whether it has content."""


def page(record: Record) -> str:
    """Return the complete page."""
    sections = [section for room in SECTIONS if (section := room.section(record)) is not None]
    title = _title(record.operators)
    links = [tag("li", tag("a", section.title, href=f"#{section.name}")) for section in sections]
    heading = [tag("h1", title), tag("p", _about(record), class_="about")]
    heading.append(tag("nav", tag("ul", links), aria_label="Sections"))
    content = [result.section(record), *(section.drawn() for section in sections)]
    return _whole_page(f"{title} – a run of opsmith", heading, content)


def _whole_page(title: str, heading: Sequence[Element], content: Sequence[Element]) -> str:
    """Build a page from parts. Its content security policy allows no script."""
    style = "".join(map(asset, ("colours.css", "chart.css", "parts.css", "report.css")))
    parts = {
        "policy": f"default-src 'none'; img-src data:; style-src '{_hash(style)}'",
        "title": as_html(tag("title", title)),
        "heading": "\n".join(map(as_html, heading)),
        "content": "\n".join(map(as_html, content)),
        "style": style,
    }
    return Template(asset("page.html")).substitute(parts)


def _title(operators: Sequence[str]) -> str:
    return " against ".join(operators) if len(operators) < 3 else listed(operators)


def _about(record: Record) -> str:
    config = record.config
    hidden = ", ".join(layer_names(config.model.all_layers)) or "none"
    network = f"Hidden layers: {hidden}; engine {config.engine}; seed {config.seed}."
    if record.start is None:
        return network
    origin = record.start.data.origin
    return f"{network} {origin[:1].upper()}{origin[1:]}, {record.start.at}."


def _hash(text: str) -> str:
    """Return the hash of a style for the content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
