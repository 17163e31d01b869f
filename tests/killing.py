"""Processes that train and are killed: a server that has imported everything forks one for each command.

So a run that is killed costs a fraction of a second, as the imports of a new process would cost more than the run.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

ROOT = Path(__file__).parents[1]
SMALL = (
    "--config", str(ROOT / "configs" / "quick.yaml"), "train.epochs=3", "train.batch_size=500", "model.hidden=[12]",
    "train.optimizer=momentum", "train.learning_rate=0.003", "train.schedule=cosine", "train.checkpoint_every=7",
    "train.log_every=3", "costs=false", "report=false",
)  # fmt: skip
"""A run of 3 epochs of 20 iterations, of two networks on the sample."""


# The server


def _serve() -> None:
    sys.path.insert(0, str(ROOT))
    import app.engine.compiled.engine
    import app.onnx  # noqa: F401 - all that training imports late
    from app.experiment.train_command import main

    for line in sys.stdin:
        order = json.loads(line)
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            _become(order, main)
        if order["after"] is not None:
            time.sleep(order["after"])
            os.kill(child, order["signal"])
        _, status = os.waitpid(child, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), time.monotonic() - started]), flush=True)


def _become(order: dict[str, Any], main: Any) -> None:
    status = 99
    try:
        os.chdir(order["folder"])
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        status = main(order["words"])
    finally:
        os._exit(status)


# Those who ask it


@dataclass
class Ended:
    """How a command ended: its status, below zero for a signal, and what it said."""

    status: int
    seconds: float
    out: str
    err: str


class Killer:
    """Runs `train.py` in a folder, and kills it when told to."""

    def __init__(self, server: subprocess.Popen[str], folder: Path):
        self._server, self.folder = server, folder

    def run(self, *words: str, after: float | None = None, signal_number: int = signal.SIGKILL) -> Ended:
        """Run a command; after some seconds a signal is sent, if there is somebody to get it."""
        order = {"words": words, "folder": str(self.folder), "after": after, "signal": int(signal_number)}
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps(order), file=self._server.stdin, flush=True)
        status, seconds = json.loads(self._server.stdout.readline())
        out, err = ((self.folder / name).read_text() for name in ("out", "err"))
        assert "Traceback" not in err, err
        return Ended(status, seconds, out, err)

    def begin(self, run: str, *words: str, **options: Any) -> Ended:
        """Begin a run, or go on with it if it was begun."""
        begun = (self.folder / run / "metrics.jsonl").exists()
        return self.run(*(["--resume", run] if begun else [*words, f"output={run}"]), **options)

    def survive(self, run: str, words: tuple[str, ...], moments: Iterator[float]) -> int:
        """Kill a run at these moments of its processes' lives until it comes to its end; gives how often it was."""
        kills = 0
        for moment in moments:
            ended = self.begin(run, *words, after=moment)
            if ended.status != -signal.SIGKILL:
                assert ended.status == 0, ended
                return kills
            kills += 1
        ended = self.begin(run, *words)
        assert ended.status == 0, ended
        return kills


@contextmanager
def killer(folder: Path) -> Iterator[Killer]:
    """A server, for as long as the block lasts."""
    command = [sys.executable, __file__]
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # threads that wait for each other take long on busy machines
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=alone) as server:
        try:
            yield Killer(server, folder)
        finally:
            server.kill()


def moments(seed: int, count: int, within: float) -> Iterator[float]:
    """Random moments."""
    draw = random.Random(seed)
    return (draw.uniform(0, within) for _ in range(count))


def results(run: Path) -> tuple[list[dict[str, Any]], dict[str, dict[str, np.ndarray]]]:
    """What must not depend on interruptions: the metrics, but for the time that they took, and all weights."""
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    timeless = [{k: v for k, v in event.items() if k != "seconds"} for event in events if event["event"] != "start"]
    return timeless, {file.name: load_file(file) for file in sorted(run.glob("*.safetensors"))}


def assert_same_results(run: Path, expected: Path) -> None:
    """The same to the last bit."""
    (events, weights), (wanted_events, wanted_weights) = results(run), results(expected)
    assert events == wanted_events
    assert weights.keys() == wanted_weights.keys()
    for file, arrays in weights.items():
        assert arrays.keys() == wanted_weights[file].keys()
        for name, array in arrays.items():
            assert array.tobytes() == wanted_weights[file][name].tobytes(), (file, name)


if __name__ == "__main__":
    _serve()
