"""Runs that are killed at fifty random moments in each engine, one or a few times each, one that hardly gets on, and
comparisons."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import forked
import pytest
from runs_of_train import ROOT, assert_same_results

from app.run.checkpoints import CHECKPOINT
from app.run.config import Config, load_kept_config
from app.run.folder import COMPARISON, CONFIG
from app.run.record import runs_of

SMALL = (
    "--config", str(ROOT / "configs" / "quick.yaml"), "train.epochs=8", "train.batch_size=500", "model.hidden=[12]",
    "train.optimizer=momentum", "train.learning_rate=0.003", "train.schedule=cosine", "train.log_every=3",
    "costs=false", "report=false",
)  # fmt: skip
"""A run of 8 epochs of 20 iterations, of two networks on the sample."""
ENGINES = get_args(get_type_hints(Config)["engine"])
COMPARISON_WORDS = (*SMALL, "train.epochs=3", "--seeds", "3", "--with", "relu,custom.relu,tanh")
IMPORTING = {**os.environ, "PYTHONPATH": str(ROOT)}
KILLS, KILLS_OF_COMPARISONS = 50, 15
_survived: dict[str, int] = {}


def go_on(run: Path, words: tuple[str, ...], after: float | None = None) -> bool:
    """Begin a run, or go on with it, and kill it after some seconds; tells whether it came to its end."""
    if (run / "summary.txt").exists() and not (run / CHECKPOINT).exists():
        return True  # it was killed after its end
    begun = (run / "metrics.jsonl").exists()
    words = ("--resume", run.name) if begun else (*words, f"output={run.name}")
    return ends(forked.start([ROOT / "train.py", *words], cwd=run.parent), after)


def ends(command: forked.Command, after: float | None) -> bool:
    """Kill a command after some seconds; tells whether it came to its end before."""
    try:
        command.wait(after)
    except subprocess.TimeoutExpired:
        command.kill()
    _, err = command.communicate()
    assert "Traceback" not in err, err
    assert command.returncode in (0, -signal.SIGKILL), err
    return command.returncode == 0


def survive(run: Path, words: tuple[str, ...], moments: Iterator[float]) -> int:
    """Kill a run at these moments of its processes' lives until it comes to its end; gives how often it was."""
    kills = 0
    for moment in moments:
        if go_on(run, words, moment):
            return kills
        kills += 1
    assert go_on(run, words)
    return kills


def moments(seed: int, count: int, within: float) -> Iterator[float]:
    """Random moments."""
    draw = random.Random(seed)
    return (draw.uniform(0, within) for _ in range(count))


def duration(run: Path, words: tuple[str, ...]) -> float:
    """How long a run takes that is left alone."""
    began = time.monotonic()
    assert go_on(run, words)
    return time.monotonic() - began


@pytest.mark.parametrize("engine", ENGINES)
def test_fifty_kills_change_nothing(engine: str, tmp_path: Path, figure: Callable[[str, int | str], None]):
    words = (*SMALL, f"engine={engine}")
    kills = runs = 0
    go_on(tmp_path / "warm", words)  # what is compiled is in the cache now
    seconds = min(duration(tmp_path / name, words) for name in ("whole", "again", "once more"))
    while kills < KILLS:
        runs += 1
        kills += survive(tmp_path / f"run{runs}", words, moments(runs, 1 + runs % 3, 0.9 * seconds))
        check(tmp_path / f"run{runs}", tmp_path / "whole")
    often = survive(tmp_path / "often", words, moments(0, 40, 0.7 * seconds))
    for run in ("often", "again", "once more"):
        check(tmp_path / run, tmp_path / "whole")
    _survived[engine] = kills + often
    figure("kills", sum(_survived.values()))
    figure("kills of one run", often)
    figure("kills by engine", ", ".join(f"{engine} {count}" for engine, count in _survived.items()))


def check(run: Path, whole: Path) -> None:
    """What it brought is as if it had been left alone, and no checkpoint or half of one is left."""
    assert_same_results(run, whole)
    assert {file.name for file in run.iterdir()} == {file.name for file in whole.iterdir()}


def compare(folder: Path, after: float | None = None) -> bool:
    """Begin a comparison, or continue it, and kill it after some seconds; tells whether it came to its end."""
    words = ("--resume", folder.name) if (folder / CONFIG).exists() else (*COMPARISON_WORDS, f"output={folder.name}")
    return ends(forked.start(["-m", "app", "compare", *words], cwd=folder.parent, env=IMPORTING), after)


def test_killed_comparisons_end_like_one_that_was_left_alone(tmp_path: Path, figure: Callable[[str, int | str], None]):
    whole = tmp_path / "whole"
    assert compare(tmp_path / "warm")
    began = time.monotonic()
    assert compare(whole)
    seconds = time.monotonic() - began
    seeds = [run.name for run in runs_of(whole, load_kept_config(whole / CONFIG))]
    kills = comparisons = 0
    while kills < KILLS_OF_COMPARISONS:
        comparisons += 1
        folder = tmp_path / f"comparison{comparisons}"
        for moment in moments(comparisons, 1 + comparisons % 3, 0.9 * seconds):
            kills += not compare(folder, moment)
        assert compare(folder)
        for seed in seeds:
            check(folder / seed, whole / seed)
        assert accuracies(folder) == accuracies(whole)
    figure("kills of comparisons", kills)


def accuracies(folder: Path) -> list[Any]:
    """What a comparison says about accuracies, apart from what is adjusted for differences in speed, too."""
    data = json.loads((folder / COMPARISON).read_text())
    results = [{name: v for name, v in each.items() if "second" not in name} for each in data["results"].values()]
    return [*results, *((each["accuracy"]["mean"], each["accuracy"]["p_seeds"]) for each in data["differences"])]
