"""Runs of train.py for the rooms that ask: typed as a user types them, or quicker, inside the test's own process."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest
from safetensors.numpy import load_file

from app.data import Dataset, load
from app.experiment.train_command import main
from app.run import config as config_module
from app.run.config import Config

ROOT = Path(config_module.__file__).parents[2]
TINY = ("train.epochs=2", "train.batch_size=8", "train.log_every=3", "model.hidden=[5]", "engine=reference")
QUICK_END = ("costs=false", "report=false", "check=false")


@dataclass
class Run:
    """What a user has of a run that has ended."""

    status: int
    out: str
    err: str
    folder: Path

    @property
    def metrics(self) -> list[dict[str, Any]]:
        lines = (self.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line, parse_constant=pytest.fail) for line in lines]

    def column(self, operator: str, event: str, key: str) -> list[Any]:
        return [m[key] for m in self.metrics if (m.get("operator"), m["event"]) == (operator, event)]


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


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of IDX files, as small as Fashion-MNIST is large: 60 and 20 images of 4 x 3 pixels."""
    folder = tmp_path_factory.mktemp("images")
    random = np.random.default_rng(0)
    for name, count in (("train", 60), ("t10k", 20)):
        labels = random.integers(0, 10, count)
        pixels = random.integers(0, 100, (count, 4, 3)) + 15 * labels[:, None, None]
        for kind, array in (("images-idx3", pixels), ("labels-idx1", labels)):
            header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            (folder / f"{name}-{kind}-ubyte").write_bytes(header + array.astype(np.uint8).tobytes())
    return folder


@pytest.fixture
def tiny(images: Path) -> tuple[Config, Dataset]:
    """A configuration and a data set that are trained in a blink."""
    settings = config_module.TrainConfig(epochs=2, batch_size=8, log_every=3, eval_batch_size=7, learning_rate=0.05)
    model = config_module.ModelConfig(hidden=(5,))
    return Config(model=model, train=settings), load(str(images))


@pytest.fixture
def train(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Run]:
    """`train.py` on the tiny images, in this process and a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, folder: str = "run") -> Run:
        status = main([f"data.source={images}", *TINY, *QUICK_END, f"output={folder}", *words])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return Run(status, printed.out, printed.err, tmp_path / folder)

    return run


Start = Callable[..., forked.Command]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `python train.py ...` in an empty folder."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    started: list[forked.Command] = []

    def run(*words: str, **options: Any) -> forked.Command:
        options = {"env": environment, "cwd": tmp_path} | options
        started.append(forked.start([ROOT / "train.py", *words], **options))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def type_it(start: Start, tmp_path: Path) -> Callable[..., Run]:
    """`python train.py ...` from its first line to its last, in a folder that is otherwise empty."""

    def run(*words: str, folder: str = "run", **options: Any) -> Run:
        process = start(*words, **options)
        out, err = process.communicate(timeout=120)
        assert "Traceback" not in err
        return Run(process.returncode, out, err, tmp_path / folder)

    return run
