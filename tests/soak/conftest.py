"""The long forms of tests, which `make soak` runs, and the figures of its last run, which docs/reliability.md shows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from reliability_page import Figure, keep_figures

FUZZED = 600
"""Seconds."""


def pytest_addoption(parser: pytest.Parser) -> None:
    text = f"how long to damage input for readers ({FUZZED})"
    parser.addoption("--fuzz-seconds", type=int, default=FUZZED, help=text)


_figures: dict[str, Figure] = {}


@pytest.fixture
def figure() -> Callable[[str, Figure], None]:
    """Keeps a figure of this run: `figure("kills", 50)` is shown where the page has `<!--kills--><!---->`."""
    return _figures.__setitem__


@pytest.fixture
def python() -> Callable[..., str]:
    """Runs `python ...` in the checkout to its end, which is a success, and returns what it prints."""

    def run(*words: str, **settings: str) -> str:
        command, root = [sys.executable, *words], Path(__file__).parents[2]
        environment = os.environ | settings
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr
        return done.stdout

    return run


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if _figures:
        keep_figures(_figures)
