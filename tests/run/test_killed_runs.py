"""A run that is killed at random moments goes on, and ends as one that was left alone.

The compiled and the eager engine, and fifty kills in each, are in tests/soak/.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from killing import SMALL, Killer, assert_same_results, moments

pytestmark = pytest.mark.slow


def test_a_run_that_is_killed_again_and_again_ends_as_one_that_was_not(tmp_path: Path):
    words, kill = (*SMALL, "engine=reference"), Killer(tmp_path)
    whole = kill.begin("whole", *words)
    assert kill.survive("run", words, moments(0, 4, 0.5 * whole.seconds)) >= 1
    assert_same_results(tmp_path / "run", tmp_path / "whole")
