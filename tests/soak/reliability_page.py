"""The figures in docs/reliability.md: they stand there between comments, and come from docs/reliability.json.

`python tests/soak/reliability_page.py` writes them into the page once more, as after a row was added.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, FIGURES = DOCS / "reliability.md", DOCS / "reliability.json"

Figure = int | float | str

_SHOWN = re.compile(r"<!--([\w ]+)-->(.*?)<!---->")
"""A name, and what stands in the page for it."""


def keep_figures(new: Mapping[str, Figure]) -> None:
    """Put figures in place of those of earlier runs, and all of them into the page."""
    figures = read_figures() | dict(new)
    FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_SHOWN.sub(lambda match: _written(match[1], figures), page), encoding="utf-8")


def read_figures() -> dict[str, Figure]:
    """The figures that are kept."""
    figures: dict[str, Figure] = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    return figures


def shown_figures() -> list[tuple[str, str]]:
    """The name of each figure in the page, and what the page says."""
    return _SHOWN.findall(PAGE.read_text(encoding="utf-8"))


def shown(figure: Figure) -> str:
    """A figure as the page shows it."""
    return f"{figure:,}" if isinstance(figure, int) else str(figure)


def _written(name: str, figures: Mapping[str, Figure]) -> str:
    return f"<!--{name}-->{shown(figures[name]) if name in figures else 'not run yet'}<!---->"


if __name__ == "__main__":
    keep_figures({})
