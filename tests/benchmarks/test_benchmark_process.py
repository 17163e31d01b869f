"""A contender in a process of its own: what it reports, and what becomes of one that cannot run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from app.run import options
from benchmarks import process, rounds, worker
from benchmarks.work import PIXELS, Data, Work

pytestmark = pytest.mark.slow

WORK = Work(epochs=5, rows=70, batch=32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    images = [random.integers(0, 256, (count, PIXELS), np.uint8) for count in (80, 20)]
    labels = [random.integers(0, 10, count) for count in (80, 20)]
    Data(images[0], labels[0], images[1], labels[1]).save(tmp_path)
    return tmp_path


def test_a_contender_trains_and_reports_its_epochs_and_its_memory(monkeypatch, folder: Path):
    data = Data.read(folder, 70)
    bright = data.train_labels[:, None].astype(np.uint8) * 25 + np.zeros(PIXELS, np.uint8)
    Data(bright, data.train_labels, bright, data.train_labels).save(folder)
    monkeypatch.setitem(process.settings, "OPENBLAS_NUM_THREADS", "1")  # so small a work has no use for more
    result = process.run("numpy_plain", folder, Work(epochs=12, rows=70, batch=7, rate=0.03))
    assert result.problem == ""
    assert len(result.seconds) == len(result.ends) == 12
    assert result.ends == sorted(result.ends)
    assert result.ends[0] > result.seconds[0] > 0
    assert all(0 <= accuracy <= 1 for accuracy in result.accuracies)
    assert result.accuracies[-1] > result.accuracies[0]
    assert 20 < result.peak < 500


def test_a_contender_whose_library_is_not_installed_is_missing(monkeypatch, capsys, folder: Path):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "benchmarks.contenders.torch_eager", raising=False)
    for work in ("{}", '{"lenet": true}'):
        worker.main("torch_eager", str(folder), work)
        assert json.loads(capsys.readouterr().out) == {"missing": "torch"}


@pytest.mark.parametrize(
    ("name", "work"),
    [("ours_pylayer", '{"rows": 70, "batch": 32, "epochs": 3}'), ("ours", '{"lenet": true, "batch": 64, "epochs": 3}')],
)
def test_a_contender_of_this_project_trains(name: str, work: str, monkeypatch, capsys, folder: Path):
    text = (options.CONFIGS / "lenet.yaml").read_text(encoding="utf-8")
    (folder / "lenet.yaml").write_text(f"{text}\nengine: reference  # which compiles nothing\n", encoding="utf-8")
    monkeypatch.setattr(options, "CONFIGS", folder)
    worker.main(name, str(folder), work)
    *epochs, _ = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(epochs) == 3
    assert all(0 <= line["accuracy"] <= 1 and line["seconds"] > 0 for line in epochs)


def test_a_missing_contender_is_tried_once(monkeypatch, folder: Path):
    tried = []

    def run(name, folder, work):
        tried.append(name)
        return process.Run(problem="missing: torch") if name == "b" else process.Run([1.0, 1.0], [0.9, 0.9], [1, 2], 9)

    monkeypatch.setattr(rounds, "run", run)
    runs = rounds.measure(folder, ["a", "b", "c"], 3, WORK)
    assert tried == ["a", "b", "c", "c", "a", "a", "c"]
    assert [len(runs[name]) for name in "abc"] == [3, 1, 3]


def test_a_contender_that_fails_or_takes_too_long_says_so(monkeypatch, folder: Path):
    (folder / "train_labels.npy").unlink()
    result = process.run("numpy_plain", folder, WORK)
    assert result.problem.startswith("failed: FileNotFoundError")
    monkeypatch.setattr(process, "LIMIT", 0.0)
    assert process.run("numpy_plain", folder, WORK).problem == "failed: given up after 0 s"


def test_contenders_choose_their_own_threads_and_kernels(monkeypatch):
    chosen = ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS"]
    for name in chosen:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("OPSMITH_TEST", "kept")
    left = process.environment({"OPSMITH_CACHE": "here"})
    assert not set(chosen) & set(left)
    assert left["OPSMITH_TEST"] == "kept"
    assert left["OPSMITH_CACHE"] == "here"
