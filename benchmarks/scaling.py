"""Train on one rank, on two, and on one with two threads, in turn: the figures of docs/scaling.md.

python -m benchmarks.scaling (some two minutes)
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from app.data import Batches, epoch_order, load
from app.errors import AppError
from app.ranks import ending
from app.ranks.world import connect
from app.run.activation import find_activation
from app.run.config import Config
from app.run.learners import make_learner
from benchmarks import machine, report
from benchmarks.process import ROOT, environment
from benchmarks.work import PIXELS

PAGE = ROOT / "docs" / "scaling.md"
WIDTH, BATCH, PAIRS = 1024, 256, 5
_ROUNDS, _ITERATIONS = 25, 20
"""Many short tries, so that some of them meet nothing else that the machine does."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="show that everything runs; write nothing")
    quick = parser.parse_args().quick
    work = {"width": 16, "rounds": 2} if quick else {"width": WIDTH, "rounds": _ROUNDS}
    about = report.machine_text(machine.describe(), sample=False)
    found = [_pair(work) for _ in range(1 if quick else PAIRS)]
    drift = _drift(1 if quick else 5)
    texts = {"machine": about, "ranks": _speeds(found), "drift": _drifts(drift)}
    print("\n\n".join(texts.values()))
    for name, text in texts.items():
        if not quick and report.replace_between(PAGE, f"scaling: {name}", text):
            print(f"Written: {name}, in {PAGE.relative_to(ROOT)}")
    return 0


def _pair(work: Mapping[str, Any]) -> dict[str, float]:
    """The seconds of an iteration: of one rank, of two, and of one with two threads."""
    return {
        "one": _on_ranks(1, {**work, "shape": "none"}),
        "two threads": _on_ranks(1, {**work, "shape": "none"}, threads=2),
        "allreduce": _on_ranks(2, {**work, "shape": "allreduce"}),
        "pserver": _on_ranks(2, {**work, "shape": "pserver"}),
    }


def _drift(epochs: int) -> dict[str, float]:
    """By how much, relatively, a loss on two ranks differs most from that of one process, for each operator."""
    found = {}
    for operator in ("custom.tanh", "custom.relu"):
        work = {"operator": operator, "epochs": epochs}
        one, two = (_on_ranks(ranks, {**work, "shape": shape}) for ranks, shape in ((1, "none"), (2, "allreduce")))
        found[operator] = max(abs(b / a - 1) for a, b in zip(one, two, strict=True))
    return found


def _on_ranks(ranks: int, work: Mapping[str, Any], threads: int = 1) -> Any:
    """What so many ranks measured, of so many threads each."""
    print(f"{ranks} rank{'s' * (ranks > 1)} of {threads}: {dict(work)} ...", flush=True)
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        raise AppError("this needs mpiexec and mpi4py: .venv/bin/python -m pip install -e '.[mpi]'")
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), str(threads))
    words = [mpiexec, "-n", str(ranks), sys.executable, "-m", "benchmarks.scaling", json.dumps(work)]
    done = subprocess.run(words, cwd=ROOT, env=environment(limits), capture_output=True, text=True, check=False)
    if done.returncode:
        raise AppError(f"measuring with {ranks} ranks failed: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def _speeds(found: list[dict[str, float]]) -> str:
    """The medians of the pairs: how many times as fast as one rank each of the others is."""
    lines = ["| | an iteration, ms | times one rank |", "| --- | ---: | ---: |"]
    titles = {
        "one": "one rank",
        "two threads": "one process of two threads",
        "allreduce": "two ranks, `allreduce`",
        "pserver": "two ranks, `pserver`",
    }
    for name, title in titles.items():
        seconds = statistics.median(pair[name] for pair in found)
        times = statistics.median(pair["one"] / pair[name] for pair in found)
        lines.append(f"| {title} | {seconds * 1e3:.2f} | {times:.2f} |")
    return "\n".join(lines)


def _drifts(drift: Mapping[str, float]) -> str:
    lines = ["| operator | largest relative difference of a loss |", "| --- | ---: |"]
    return "\n".join([*lines, *(f"| `{operator}` | {difference:.0e} |" for operator, difference in drift.items())])


# On a rank


def _measure() -> int:
    work = json.loads(sys.argv[1])
    print(json.dumps(list(_losses(work)) if "operator" in work else _seconds(work)))
    return 0


def _seconds(work: Mapping[str, Any]) -> float:
    """The seconds of an iteration of plain SGD: a quarter of the tries are faster; the first does not count."""
    random, taken, world = np.random.default_rng(0), [], connect()
    images = random.integers(0, 256, (BATCH * _ITERATIONS, PIXELS)).astype(np.uint8)
    batches = Batches(images, random.integers(0, 10, len(images)), None, BATCH)
    settings = {"model": {"hidden": [work["width"]]}, "dist": {"shape": work["shape"]}}
    learner = make_learner(msgspec.convert(settings, Config), find_activation("custom.relu"), PIXELS)
    learner.compile(batches[:1])
    for _ in range(work["rounds"] + 1):
        world.allgather(None)  # all begin at the same time
        start = time.perf_counter()
        learner.train(batches)
        taken.append(time.perf_counter() - start)
    return statistics.quantiles(taken[1:], n=4, method="inclusive")[0] / len(batches)


def _losses(work: Mapping[str, Any]) -> Iterator[float]:
    """The loss of every batch of MNIST over some epochs."""
    connect()
    config = msgspec.convert({"dist": {"shape": work["shape"]}}, Config)
    data, learner = load(), make_learner(config, find_activation(work["operator"]), PIXELS)
    for epoch in range(work["epochs"]):
        order = epoch_order(config.seed, epoch, len(data.train_images))
        yield from learner.train(Batches(data.train_images, data.train_labels, order, BATCH))[0].tolist()


if __name__ == "__main__":
    is_rank = sys.argv[1:2] and sys.argv[1].startswith("{")
    sys.exit(ending.run(_measure if is_rank else main))
