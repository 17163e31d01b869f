"""The long forms of tests, which `make soak` runs, and the figures of its last run, which docs/reliability.md shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from reliability_page import Figure, keep_figures

FUZZED = 600
"""Seconds."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fuzz-seconds", type=int, default=FUZZED, help=f"how long to damage input for readers ({FUZZED})"
    )


_figures: dict[str, Figure] = {}


@pytest.fixture
def figure() -> Callable[[str, Figure], None]:
    """Keeps a figure of this run: `figure("kills", 50)` is shown where the page has `<!--kills--><!---->`."""
    return _figures.__setitem__


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if _figures:
        keep_figures(_figures)
