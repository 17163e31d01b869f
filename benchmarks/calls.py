"""What one call of a custom operator costs where every call is made from Python: tanh of 16 numbers, and back."""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.process import ProcessError, lines
from benchmarks.rounds import titles

FOLDER = Path(__file__).parent / "callers"
SAMPLES, CALLS = 20, 1000


def measure(rounds: int) -> list[dict[str, Any]]:
    """A row for each caller: microseconds of a call, in samples of many calls, in processes that take turns."""
    rows = [{"name": name, "title": title, "problem": "", "us": []} for name, title in titles(FOLDER).items()]
    for number in range(rounds):
        for row in rows if number % 2 == 0 else reversed(rows):
            try:
                for _, line in lines(["benchmarks.calls", row["name"]]):
                    row["problem"] = f"missing: {line['missing']}" if "missing" in line else ""
                    row["us"] += line.get("us", [])
            except ProcessError as error:
                row["problem"] = f"failed: {error}"
            print(f"  round {number + 1} of {rounds}: {row['name']}: {described(row)}", flush=True)
    return rows


def described(row: dict[str, Any]) -> str:
    return row["problem"] or f"{statistics.median(row['us']):.1f} µs"


def main(name: str) -> None:
    try:
        call = importlib.import_module(f"benchmarks.callers.{name}").call
    except ModuleNotFoundError as error:
        print(json.dumps({"missing": error.name}))
        return
    _seconds(call)  # warms up
    print(json.dumps({"us": [_seconds(call) / CALLS * 1e6 for _ in range(SAMPLES)]}))


def _seconds(call) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(*sys.argv[1:])
