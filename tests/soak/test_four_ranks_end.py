"""Four ranks, on however few cores: all that can befall one of them (tests/rank_failures.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rank_failures import FAILURES, check, fail

seconds: list[float] = []


@pytest.mark.parametrize("name", FAILURES)
def test_all_four_end_when_a_rank(name: str, tmp_path: Path):
    ended = fail(tmp_path, 4, FAILURES[name][0])
    check(ended, name)
    seconds.append(ended.seconds)


def test_the_longest_time_is_recorded(figure: Callable[[str, float], None]):
    figure("rank failures", len(seconds))
    figure("rank failures seconds", round(max(seconds), 1))
