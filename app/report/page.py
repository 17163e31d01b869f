"""The report as one self-contained page: it loads nothing and runs only its own script."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any
from xml.etree.ElementTree import Element

from app.report.charts import data, markers
from app.report.markup import as_html, tag
from app.report.record import Record
from app.report.sections import costs, curves, failures, mistakes, operators, result, settings, units
from app.run.layers import layer_names
from app.run.wording import listed

ASSETS = Path(__file__).parent / "assets"
MARK = '<body class="opsmith">'
"""By which pages of opsmith are known."""
SECTIONS = (failures, curves, operators, costs, mistakes, units, settings)
"""The sections after the verdict, in order; each decides whether it has content."""
_HINT = "Drag over a chart to zoom in; double-click to zoom out. Click a name to show only its curves."
"""Shown by the script, and not printed."""


def page(record: Record) -> str:
    """Return the complete page."""
    sections = [section for room in SECTIONS if (section := room.section(record)) is not None]
    title = _title(record.operators)
    links = [tag("li", tag("a", section.title, href=f"#{section.name}")) for section in sections]
    charts = {f"chart-{chart.name}": data(chart) for section in sections for chart in section.charts}
    heading = [tag("h1", title), tag("p", _about(record), class_="about")]
    heading.append(tag("nav", tag("ul", links), aria_label="Sections"))
    heading.append(tag("p", _HINT, class_="about hint", hidden=""))
    content = [markers(), result.section(record), *(section.drawn() for section in sections)]
    return whole_page(f"{title} – a run of opsmith", heading, content, "report.js", charts)


def whole_page(title: str, heading: Sequence[Element], content: Sequence[Element], script: str, data: Any) -> str:
    """Build a page from parts, a script and its data. Its content security policy allows only that script."""
    style, code = asset("parts.css") + asset("report.css"), asset(script)
    parts = {
        "policy": f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(code)}'",
        "title": as_html(tag("title", title)),
        "heading": "\n".join(map(as_html, heading)),
        "content": "\n".join(map(as_html, content)),
        "data": _json(data),
        "style": style,
        "script": code,
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


def asset(name: str) -> str:
    """Return the text of a file of the page."""
    return (ASSETS / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash of a script or style for the content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: Any) -> str:
    """Return JSON that is escaped for use inside an HTML element."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
