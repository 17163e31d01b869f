"""The report as one page: everything in it, nothing fetched, and no script but its own."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

from app.report.charts import data
from app.report.markup import as_html, tag
from app.report.record import Record
from app.report.sections import costs, curves, mistakes, result, settings, units
from app.report.wording import listed
from app.run.layers import told

ASSETS = Path(__file__).parent / "assets"
SECTIONS = (curves, costs, mistakes, units, settings)
"""What may follow the verdict, in this order; each knows whether there is anything for it to show."""


def page(record: Record) -> str:
    """The whole page."""
    sections = [section for room in SECTIONS if (section := room.section(record)) is not None]
    title = _title(record.operators)
    links = [tag("li", tag("a", section.title, href=f"#{section.name}")) for section in sections]
    charts = {f"chart-{chart.name}": data(chart) for section in sections for chart in section.charts}
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    parts = {
        "policy": f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'",
        "title": as_html(tag("title", f"{title} – a run of opsmith")),
        "heading": as_html(tag("h1", title)),
        "about": as_html(tag("p", _about(record), class_="about")),
        "links": as_html(tag("ul", links)),
        "verdict": as_html(result.section(record)),
        "sections": "\n".join(as_html(section.drawn()) for section in sections),
        "charts": _json(charts),
        "style": style,
        "script": script,
    }
    return Template(_asset("page.html")).substitute(parts)


def _title(operators: Sequence[str]) -> str:
    return " against ".join(operators) if len(operators) < 3 else listed(operators)


def _about(record: Record) -> str:
    config = record.config
    hidden = ", ".join(told(config.model.all_layers)) or "none"
    network = f"Hidden layers: {hidden}; engine {config.engine}; seed {config.seed}."
    if record.start is None:
        return network
    origin = record.start.data.origin
    return f"{network} {origin[:1].upper()}{origin[1:]}, {record.start.at}."


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a policy names the one script, or style, that it allows."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: Any) -> str:
    """JSON in which nothing can end the element that it stands in."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
