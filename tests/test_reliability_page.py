"""docs/reliability.md: each test that it names is there, and each figure is the one that `make soak` kept."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "soak"))

from reliability_page import PAGE, read_figures, shown, shown_figures  # noqa: E402

LINKS = sorted(set(re.findall(r"\]\((\.\./tests/[^)]+)\)", PAGE.read_text(encoding="utf-8"))))
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| promise "))
]


@pytest.mark.parametrize("link", LINKS)
def test_linked_tests_exist(link):
    assert (PAGE.parent / link).resolve().exists()


def test_every_promise_is_held_by_a_test():
    assert ROWS
    for promise, tests in ROWS:
        assert "](../tests/" in tests or tests.startswith("the same"), promise


def test_the_figures_are_those_of_the_last_soak():
    figures = read_figures()
    page = shown_figures()
    for name, text in page:
        assert text == shown(figures[name]), f"{name}: run python tests/soak/reliability_page.py"
    assert {name for name, _ in page} == set(figures) != set()
