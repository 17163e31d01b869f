"""Measure training on one rank and on two, in turn: the figures of docs/scaling.md."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from app import command_line
from app.errors import AppError
from benchmarks import machine, report
from benchmarks.process import ROOT, environment
from benchmarks.report import replace_between

RESULTS, PAGE = Path(__file__).with_name("results.json"), ROOT / "docs" / "scaling.md"
SHAPES = ["allreduce", "pserver"]
ASKED = {"widths": [1024], "batches": [1024, 512, 256]}
DRIFT = {"operators": ["custom.tanh", "custom.relu"], "epochs": 5}
QUICK = {"widths": [16], "batches": [256], "rounds": 2, "iterations": 2}
PAIRS = 5
"""How often one rank, two of them and one of two threads are measured in turn."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="show that everything runs; write nothing")
    how.add_argument("--page", action="store_true", help="write the page again, from the last measurements")
    return command_line.run(lambda: _run(parser.parse_args()))


def _run(options: argparse.Namespace) -> int:
    if options.page:
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    else:
        pairs = [_pair(QUICK)] if options.quick else [_pair(ASKED) for _ in range(PAIRS)]
        drift = _drift({**DRIFT, "epochs": 1} if options.quick else DRIFT)
        results = {"machine": machine.describe(), "pairs": pairs, "drift": drift}
    found = texts(results)
    print("\n\n".join(found.values()))
    if not options.quick:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        for name, text in found.items():
            replace_between(PAGE, f"scaling: {name}", text)
        print(f"\nWritten: {RESULTS.relative_to(ROOT)}, {PAGE.relative_to(ROOT)}")
    return 0


def _pair(asked: dict[str, Any]) -> dict[str, Any]:
    """The seconds of an iteration on one rank, on two of them, and on one of two threads."""
    alone = {**asked, "shapes": ["none"]}
    return {
        "one": _measured(1, alone),
        "two": _measured(2, {**asked, "shapes": SHAPES}),
        "threads": _measured(1, alone, threads=2),
    }


def _drift(asked: dict[str, Any]) -> dict[str, float]:
    """By how much, relatively, a loss on two ranks differs most from that of one process, for each operator."""
    one, two = (_measured(ranks, {**asked, "shape": shape}) for ranks, shape in ((1, "none"), (2, "allreduce")))
    pairs = zip(one, two, strict=True)
    return {
        alone["operator"]: max(abs(b / a - 1) for a, b in zip(alone["losses"], both["losses"], strict=True))
        for alone, both in pairs
    }


def _measured(ranks: int, asked: dict[str, Any], threads: int = 1) -> list[dict[str, Any]]:
    """What so many ranks measured, of so many threads each."""
    what = ", ".join(f"{key} {value}" for key, value in asked.items())
    print(f"{ranks} rank{'s' * (ranks > 1)}, {what} ...", flush=True)
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        raise AppError("this needs mpiexec and mpi4py: pip install 'opsmith[mpi]'")
    words = [mpiexec, "-n", str(ranks), sys.executable, "-m", "benchmarks.scaling.measuring", json.dumps(asked)]
    limits = environment(dict.fromkeys(_THREADS, str(threads)))
    settings = {**limits, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(words, cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AppError(f"measuring with {ranks} ranks failed: {done.stderr.strip()}")
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def texts(results: dict[str, Any]) -> dict[str, str]:
    """What stands at each place of the page."""
    return {
        "machine": report.machine_text(results["machine"], sample=False),
        "ranks": _table(results["pairs"]),
        "drift": _drift_table(results["drift"]),
    }


def _table(pairs: Sequence[dict[str, Any]]) -> str:
    """The medians of the pairs: how many times as fast as one rank two ranks are, and one of two threads."""
    head = ["width", "batch", "shape", "two ranks, ms", "times one rank", "one process of two threads: times"]
    lines = [head, ["---:"] * len(head)]
    for point in sorted(pairs[0]["two"], key=lambda p: (p["width"], p["batch"], p["shape"])):
        width, batch, shape = point["width"], point["batch"], point["shape"]
        two = [_of(pair["two"], width, batch, shape) for pair in pairs]
        one = [_of(pair["one"], width, batch) for pair in pairs]
        threads = [_of(pair["threads"], width, batch) for pair in pairs]
        times = [median(a / b for a, b in zip(one, others, strict=True)) for others in (two, threads)]
        lines.append([str(width), str(batch), shape, f"{median(two) * 1e3:.2f}", *(f"{each:.2f}" for each in times)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _drift_table(drift: dict[str, float]) -> str:
    lines = ["| operator | largest relative difference of a loss |", "| --- | ---: |"]
    return "\n".join([*lines, *(f"| `{operator}` | {difference:.0e} |" for operator, difference in drift.items())])


def _of(points: Sequence[dict[str, Any]], width: int, batch: int, shape: str = "none") -> float:
    wanted = {"width": width, "batch": batch, "shape": shape}
    return next(float(p["seconds"]) for p in points if {key: p[key] for key in wanted} == wanted)


if __name__ == "__main__":
    sys.exit(main())
