"""A custom ReLU and the built-in one in one process, epoch after epoch: the fairest way to tell which is faster."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from benchmarks.ours import prepare, shuffled
from benchmarks.process import ROOT, lines
from benchmarks.work import Data, Work

CUSTOM = {
    "Numba function on arrays": str(ROOT / "benchmarks/contenders/ours_array.py:relu"),
    "function of one number": str(ROOT / "benchmarks/contenders/ours_scalar.py:relu"),
    "shipped custom.relu": "custom.relu",
    "none: the built-in one against itself": "relu",  # how far from 1 this measurement is by itself
}


def measure(folder: Path, epochs: int) -> dict[str, list[float]]:
    """For each custom ReLU, its time over the built-in one's, pair by pair of epochs; each in a process of its own."""
    ratios = {}
    for title in CUSTOM:
        said, problem = lines(["benchmarks.paired", str(folder), title, str(epochs)])
        if not problem:
            ratios[title] = [line["ratio"] for _, line in said]
        print(f"  {title}: {problem or format(statistics.median(ratios[title]), '.3f')}", flush=True)
    return ratios


def main(folder: str, title: str, epochs: str) -> None:
    work = Work()
    data = Data.read(Path(folder), work.rows)
    custom, builtin = prepare(data, work, CUSTOM[title]), prepare(data, work, "relu")
    for epoch in range(-1, int(epochs)):
        batches = shuffled(data, work, epoch + 1)
        pair = [custom, builtin] if epoch % 2 == 0 else [builtin, custom]  # neither is always first
        took = {learner: _seconds(learner, batches) for learner in pair}
        if epoch >= 0:  # the one before warms both up
            print(json.dumps({"ratio": took[custom] / took[builtin]}), flush=True)


def _seconds(learner, batches) -> float:
    start = time.perf_counter()
    learner.train(batches)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(*sys.argv[1:])
