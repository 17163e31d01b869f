"""All contenders, one process each, in rounds, so that a machine whose speed drifts drifts for all of them."""

from __future__ import annotations

import ast
import random
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.process import Run, in_turns, run
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
    for turn, name in in_turns(rounds, names):
        if found[name] and found[name][-1].problem.startswith("missing"):
            continue
        one = run(name, folder, work)
        found[name].append(one)
        best = f"{min(one.seconds[1:]):.4f} s, peak {one.peak:.0f} MiB" if not one.problem else one.problem
        print(f"  {turn}: {name}: {best}", flush=True)
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


FIRST_RUNS = {
    "**This project**, nothing edited": ("ours_scalar", False),
    "**This project**": ("ours_scalar", True),
    "**This project**, with an empty cache": ("ours_scalar", True),
    "NumPy, the gradient written by hand": ("numpy_plain", True),
    "JAX, one jit call per step": ("jax_step", True),
    "PyTorch eager": ("torch_eager", True),
    "PyTorch, the whole step through torch.compile": ("torch_compile", True),
}
"""For each row of the table of first runs after an edit: the contender, and whether its operator is a new one."""


def first_runs(folder: Path, rounds: int) -> list[dict[str, Any]]:
    """Seconds from the start of a process to five trained and tested epochs, with an operator never seen before."""
    rows = [{"title": title, "problem": "", "seconds": []} for title in FIRST_RUNS]
    for turn, row in in_turns(rounds, rows):
        name, is_edited = FIRST_RUNS[row["title"]]
        work = Work(epochs=FIVE, slope=random.uniform(0.01, 0.3) if is_edited else None)
        with tempfile.TemporaryDirectory() as empty:
            cache = {"OPSMITH_CACHE": empty, "NUMBA_CACHE_DIR": empty} if "empty" in row["title"] else {}
            one = run(name, folder, work, cache)
        row["problem"] = one.problem
        row["seconds"] += [] if one.problem else [one.ends[-1]]
        print(f"  {turn}: {row['title']}: {one.problem or format(one.ends[-1], '.2f')}", flush=True)
    return rows
