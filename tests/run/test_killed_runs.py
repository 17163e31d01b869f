"""Runs that are killed at random moments go on, and end as those do that were left alone: `make soak` has many more."""

from __future__ import annotations

from pathlib import Path

import pytest
from killing import SMALL, assert_same_results, killer, moments


@pytest.mark.parametrize("engine", ["compiled", "reference", "eager"])
def test_a_run_that_is_killed_again_and_again_ends_as_one_that_was_not(engine: str, tmp_path: Path):
    words = (*SMALL, f"engine={engine}")
    with killer(tmp_path) as kill:
        kill.begin("warm", *words)  # what is compiled is in the cache now
        whole = kill.begin("whole", *words)
        assert kill.survive("run", words, moments(0, 6, 0.5 * whole.seconds)) >= 1
        assert_same_results(tmp_path / "run", tmp_path / "whole")
        assert_same_results(tmp_path / "warm", tmp_path / "whole")
