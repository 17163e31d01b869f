"""The report as one self-contained page: it loads nothing and has no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from string import Template
from xml.etree.ElementTree import Element

from app.report.markup import as_html, asset, tag
from app.report.sections import costs, curves, failures, mistakes, operators, parameters, result, settings, units
from app.run.comparison import Comparison
from app.run.layers import layer_names
from app.run.record import RunRecord
from app.run.wording import count, listed

MARK = '<body class="opsmith">'
"""By which pages of opsmith are known."""
SECTIONS = (failures, curves, parameters, operators, costs, mistakes, units, settings)
"""The sections after the verdict, in order; each decides whether it has content."""


def page(runs: Sequence[RunRecord], comparison: Comparison | None = None) -> str:
    """Return the complete page about a run, or about the runs of a comparison."""
    sections = [section for room in SECTIONS if (section := room.section(runs)) is not None]
    title = _title(runs[0].operators)
    links = [tag("li", tag("a", section.title, href=f"#{section.name}")) for section in sections]
    heading = [tag("h1", title), tag("p", _about(runs[0], comparison), class_="about")]
    heading.append(tag("nav", tag("ul", links), aria_label="Sections"))
    content = [result.section(runs, comparison), *(section.drawn() for section in sections)]
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


def _about(run: RunRecord, comparison: Comparison | None) -> str:
    config, start = run.config, run.start
    hidden = ", ".join(layer_names(config.model.all_layers)) or "none"
    seeds = f"seed {config.seed}" if comparison is None else count(len(comparison.runs), "seed")
    network = f"Hidden layers: {hidden}; engine {config.engine}; {seeds}."
    if start is None:
        return network
    origin = start.data.origin
    return f"{network} {origin[:1].upper()}{origin[1:]}, {start.at}."


def _hash(text: str) -> str:
    """Return the hash of a style for the content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
