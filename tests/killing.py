"""Commands that train and are killed, and what must be the same as if they had not been."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked
import numpy as np
from safetensors.numpy import load_file

ROOT = Path(__file__).parents[1]
SMALL = (
    "--config", str(ROOT / "configs" / "quick.yaml"), "train.epochs=3", "train.batch_size=500", "model.hidden=[12]",
    "train.optimizer=momentum", "train.learning_rate=0.003", "train.schedule=cosine", "train.checkpoint_every=7",
    "train.log_every=3", "costs=false", "report=false",
)  # fmt: skip
"""A run of 3 epochs of 20 iterations, of two networks on the sample."""


@dataclass
class Ended:
    """How a command ended: its status, below zero for a signal, and what it said."""

    status: int
    seconds: float
    out: str
    err: str


class Killer:
    """Runs `train.py` in a folder, and kills it when told to."""

    def __init__(self, folder: Path):
        self.folder = folder

    def run(self, *words: str, after: float | None = None, signal_number: int = signal.SIGKILL) -> Ended:
        """Run a command; after some seconds a signal is sent, if there is somebody to get it."""
        started = time.monotonic()
        command = forked.start([ROOT / "train.py", *words], cwd=self.folder)
        try:
            command.wait(after)
        except subprocess.TimeoutExpired:
            command.send_signal(signal_number)
        out, err = command.communicate()
        assert "Traceback" not in err, err
        return Ended(command.wait(), time.monotonic() - started, out, err)

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
