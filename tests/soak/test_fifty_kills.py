"""Runs that are killed at fifty random moments in each engine, one or a few times each, and one that hardly gets on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from killing import SMALL, Killer, assert_same_results, moments

from app.run.checkpoints import read_checkpoint
from app.run.config import Config

ENGINES = get_args(get_type_hints(Config)["engine"])
KILLS = 50
_survived: dict[str, int] = {}


@pytest.mark.parametrize("engine", ENGINES)
def test_fifty_kills_change_nothing(engine: str, tmp_path: Path, figure: Callable[[str, int | str], None]):
    words = (*SMALL, f"engine={engine}")
    kills = runs = 0
    kill = Killer(tmp_path)
    kill.begin("warm", *words)  # what is compiled is in the cache now
    seconds = min(kill.begin(name, *words).seconds for name in ("whole", "again", "once more"))
    while kills < KILLS:
        runs += 1
        kills += kill.survive(f"run{runs}", words, moments(runs, 1 + runs % 3, 0.9 * seconds))
        check(tmp_path / f"run{runs}", tmp_path / "whole")
    often = kill.survive("often", words, moments(0, 40, 0.7 * seconds))
    for run in ("often", "again", "once more"):
        check(tmp_path / run, tmp_path / "whole")
    _survived[engine] = kills + often
    figure("kills", sum(_survived.values()))
    figure("kills of one run", often)
    figure("kills by engine", ", ".join(f"{engine} {count}" for engine, count in _survived.items()))


def check(run: Path, whole: Path) -> None:
    """What it brought is as if it had been left alone, and no half file was taken for a checkpoint."""
    assert_same_results(run, whole)
    for file in (run / "checkpoints").glob("*.safetensors"):
        read_checkpoint(file)
