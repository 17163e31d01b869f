"""All contenders, one process each, in rounds, so that a machine whose speed drifts drifts for all of them."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.process import ROOT, Run, environment, run
from benchmarks.work import Work

FOLDER = Path(__file__).parent / "contenders"
FIVE = 5
"""Epochs, of which the time from the start of the process is reported."""


def titles(folder: Path = FOLDER) -> dict[str, str]:
    """What each contender is called in the table: the first line of its docstring, read without running it."""
    files = sorted(file for file in folder.glob("*.py") if file.stem != "__init__")
    docstrings = {file.stem: ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) for file in files}
    return {name: (text or name).splitlines()[0] for name, text in docstrings.items()}


def measure(folder: Path, names: Sequence[str], rounds: int, work: Work) -> dict[str, list[Run]]:
    """The runs of each contender."""
    found: dict[str, list[Run]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            if found[name] and found[name][-1].problem.startswith("missing"):
                continue
            one = run(name, folder, work)
            found[name].append(one)
            best = f"{min(one.seconds[1:]):.4f} s, peak {one.peak:.0f} MiB" if not one.problem else one.problem
            print(f"  round {number + 1} of {rounds}: {name}: {best}", flush=True)
    return found


def summary(name: str, title: str, runs: Sequence[Run]) -> dict[str, Any]:
    """A contender's row: of several rounds the best of each time, and the most memory."""
    row: dict[str, Any] = {"name": name, "title": title, "problem": runs[-1].problem, "runs": [asdict(r) for r in runs]}
    good = [one for one in runs if not one.problem]
    if not good:
        return row
    row["problem"] = ""
    row["best"] = min(min(one.seconds[1:]) for one in good)
    row["median"] = statistics.median(seconds for one in good for seconds in one.seconds[1:])
    row["peak"] = max(one.peak or 0.0 for one in good)
    row["five"] = min((one.ends[FIVE - 1] for one in good if len(one.ends) >= FIVE), default=None)
    row["accuracy"] = good[-1].accuracies[-1]
    return row


def starts(folder: Path) -> dict[str, float]:
    """Seconds of our own first steps: with nothing compiled yet, and of the whole command `train.py`."""
    found = {}
    with tempfile.TemporaryDirectory() as empty:
        cold = run("ours", folder, Work(epochs=FIVE), {"OPSMITH_CACHE": empty, "NUMBA_CACHE_DIR": empty})
        if cold.problem:
            print(f"  cold start: {cold.problem}")
        else:
            found["cold"] = cold.ends[-1]
    command = [sys.executable, "train.py", "--config", "configs/seed.yaml", "--no-baseline"]
    times = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as output:
            start = time.perf_counter()
            done = subprocess.run(
                [*command, f"output={output}/run"], cwd=ROOT, env=environment(), capture_output=True, text=True
            )
            times.append(time.perf_counter() - start)
        if done.returncode:
            print(f"  train.py failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
            return found
    return {**found, "train.py": min(times)}
