"""Starting a contender in a process of its own, and what it had to say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.work import Work

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 300.0
"""Seconds after which a process is given up."""

T = TypeVar("T")
_TUNING = ("OPENBLAS_", "GOTO_", "OMP_", "GOMP_", "KMP_", "MKL_", "BLIS_", "VECLIB_", "XLA_FLAGS")

AVX2 = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+64bit,+avx,+avx2,+bmi,+bmi2,+cmov,+cx16,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+pclmul,"
    "+popcnt,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3",
    "OPENBLAS_CORETYPE": "Haswell",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
}
"""The environment in which everyone uses the instructions of a processor without AVX-512."""
settings: dict[str, str] = {}
"""What is set in the environment of every process."""


@dataclass
class Run:
    """What one process did. Of a run that is no good, `problem` says why."""

    seconds: list[float] = field(default_factory=list)  # of training alone, by epoch
    accuracies: list[float | None] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)  # seconds from the start of the process to the tested epoch
    peak: float | None = None  # MiB
    problem: str = ""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment, less what would choose threads or kernels for a library."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_TUNING) and not k.endswith("_NUM_THREADS")}
    return {**kept, **settings, **(extra or {})}


def run(name: str, folder: Path, work: Work, extra: Mapping[str, str] | None = None) -> Run:
    """A contender at work, in a process of its own."""
    said, problem = lines(["benchmarks.worker", name, str(folder), json.dumps(asdict(work))], extra)
    found = Run(problem=problem)
    for moment, line in said:
        if "peak" in line:
            found.peak = line["peak"]
        else:
            found.seconds.append(line["seconds"])
            found.accuracies.append(line["accuracy"])
            found.ends.append(moment)
    return found


def in_turns(rounds: int, items: Sequence[T]) -> Iterator[tuple[str, T]]:
    """Every item once in each round, with the round's name: in order, and backwards in every other round."""
    for number in range(rounds):
        for item in items if number % 2 == 0 else reversed(items):
            yield f"round {number + 1} of {rounds}", item


def lines(module: list[str], extra: Mapping[str, str] | None = None) -> tuple[list[tuple[float, dict[str, Any]]], str]:
    """The lines of JSON that `python -m module` prints, each with the seconds since the process was started; and why
    it is no good, or ''."""
    said = []
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", *module],
            cwd=ROOT,
            env=environment(extra),
            stdout=subprocess.PIPE,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        stop = threading.Timer(LIMIT, process.kill)
        stop.start()
        try:
            for line in process.stdout or ():
                moment = time.perf_counter() - start
                if line.startswith("{"):  # some libraries print greetings
                    said.append((moment, json.loads(line)))
            status = process.wait()
        finally:
            stop.cancel()
            process.kill()
            process.wait()
        if status:
            errors.seek(0)
            last = [line.strip() for line in errors if line.strip()][-1:] or [f"exit status {status}"]
            late = time.perf_counter() - start > LIMIT
            return said, "failed: " + (f"given up after {LIMIT:.0f} s" if late else last[0][:200])
    missing = [line["missing"] for _, line in said if "missing" in line]
    return ([], f"missing: {missing[0]}") if missing else (said, "")
