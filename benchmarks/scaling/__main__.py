"""Measure training on 1 to 4 ranks, and set it beside what is derived: the figures of docs/scaling.md."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from app import command_line
from app.errors import AppError
from benchmarks import machine
from benchmarks.process import ROOT, environment
from benchmarks.report import replace_between
from benchmarks.scaling import page
from benchmarks.scaling.model import arrays

RESULTS, PAGE = Path(__file__).with_name("results.json"), ROOT / "docs" / "scaling.md"
WIDTHS, SHAPES, RANKS, BATCH = [64, 256, 1024], ["rows", "allreduce", "pserver"], [2, 3, 4], 256
SLOWER = (
    {"ranks": 2, "widths": [256], "latency": 0.001},
    {"ranks": 2, "widths": [256], "bandwidth": 125e6},
    {"ranks": 4, "widths": [64], "latency": 0.02},
    {"ranks": 8, "widths": [64], "latency": 0.02, "bandwidth": 12.5e6},
)
"""Networks that are simulated: of one of them, messages are slow; of one, bytes; of more ranks, both."""
LARGER = {"widths": [1024], "batches": [1024, 512, 256]}
PAIRS = 5
"""How often one rank, two of them and one of two threads are measured in turn, with larger batches."""
PIECES = {"widths": [100, 1024], "batches": [BATCH], "pieces": [None, 4, 12], "iterations": 4, "rounds": 60}
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="show that everything runs; write nothing")
    how.add_argument("--page", action="store_true", help="write the page anew, from what was measured last")
    return command_line.run(lambda: _run(parser.parse_args()))


def _run(options: argparse.Namespace) -> int:
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if options.page else None
    results = kept or (_quick() if options.quick else _whole())
    texts = page.texts(results)
    print("\n\n".join(texts.values()))
    if not options.quick:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        for name, text in texts.items():
            replace_between(PAGE, f"scaling: {name}", text)
        print(f"\nWritten: {RESULTS.relative_to(ROOT)}, {PAGE.relative_to(ROOT)}")
    return 0


def _whole() -> dict[str, Any]:
    results: dict[str, Any] = {"machine": machine.describe(), "batch": BATCH}
    alone = {"widths": WIDTHS, "shapes": ["none"], "batches": [BATCH, BATCH // 2, BATCH // 4]}
    results["one"] = _measured(1, alone)["points"]
    many = {"widths": WIDTHS, "shapes": SHAPES, "batches": [BATCH]}
    results["many"] = [_measured(ranks, many) for ranks in RANKS]
    results["larger"] = [_pair(LARGER) for _ in range(PAIRS)]
    results["pieces"] = _in_pieces(PIECES)
    results["slower"] = [_slower(dict(network)) for network in SLOWER]
    return results


def _quick() -> dict[str, Any]:
    results: dict[str, Any] = {"machine": machine.describe(), "batch": BATCH}
    few = {"widths": [16], "rounds": 2, "iterations": 2}
    results["one"] = _measured(1, {**few, "shapes": ["none"], "batches": [BATCH, BATCH // 2]})["points"]
    results["many"] = [_measured(2, {**few, "shapes": ["allreduce"], "batches": [BATCH]})]
    results["larger"] = [_pair({**few, "batches": [BATCH]})]
    results["pieces"] = _in_pieces({**few, "batches": [BATCH], "pieces": [None, 2]})
    results["slower"] = [_slower({**few, "ranks": 2, "latency": 0.01})]
    return results


def _pair(asked: dict[str, Any]) -> dict[str, Any]:
    """One rank with whole batches and with the half of them, two ranks in both shapes, and one of two threads."""
    halves = [batch // 2 for batch in asked["batches"]]
    alone = {**asked, "shapes": ["none"]}
    return {
        "one": _measured(1, {**alone, "batches": list(dict.fromkeys([*asked["batches"], *halves]))})["points"],
        "two": _measured(2, {**asked, "shapes": SHAPES})["points"],
        "threads": _measured(1, alone, threads=2)["points"],
    }


def _in_pieces(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Batches as they are and in pieces, in turn, on one rank and on two."""
    return [_measured(1, {**asked, "shapes": ["none"]}), _measured(2, {**asked, "shapes": ["allreduce"]})]


def _slower(network: dict[str, Any]) -> dict[str, Any]:
    asked = {"shapes": ["allreduce"], "batches": [BATCH], "iterations": 5, "rounds": 4, **network}
    return {**network, **_measured(network["ranks"], asked)}


def _measured(ranks: int, asked: dict[str, Any], threads: int = 1) -> dict[str, Any]:
    """What so many ranks of one thread, or of more, have measured."""
    print(f"{ranks} rank{'s' * (ranks > 1)}, width {asked['widths']}, {asked['shapes']} ...", flush=True)
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
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    for point in found["points"]:
        point["parameters"] = sum(arrays(point["width"])) // 4
    return found


if __name__ == "__main__":
    sys.exit(main())
