"""Files are read up to a limit, and only regular files are opened."""

from __future__ import annotations

import errno
import os
import random
import re
import signal
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import app
from app.errors import AppError, FileError, MissingFileError
from app.files import open_file, read_file, write_whole
from app.run.checkpoints import CHECKPOINT, read_checkpoint
from app.run.config import load_kept_config
from app.run.descriptions import read_descriptions
from app.run.events import read as read_events
from app.run.predictions import read_predictions
from app.run.weights import read_weights, write_weights
from app.static.model_file import read_model


def make(path: Path, kind: str) -> Path:
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    return path


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str):
    path = make(tmp_path / "x", kind)
    for reader in (open_file, read_file, app.load):
        with pytest.raises(FileError, match=f"x is {kind}, expected a file"):
            reader(path)


@pytest.mark.parametrize("kind", ["a pipe", "a device"])
def test_readers_of_a_run_open_only_regular_files(tmp_path: Path, kind: str):
    for name in ("weights-relu.safetensors", "metrics.jsonl", "model.json"):
        make(tmp_path / name, kind)
    for read in (read_weights, lambda folder: list(read_events(folder)), lambda folder: read_model(folder / "model")):
        with pytest.raises(
            FileError, match=f"is ({kind}|a symbolic link), expected a file"
        ):  # `make` links to a device
            read(tmp_path)


READERS = {
    "config.yaml": lambda folder: load_kept_config(folder / "config.yaml"),
    "metrics.jsonl": lambda folder: list(read_events(folder)),
    "predictions.safetensors": read_predictions,
    "operators.json": read_descriptions,
    "weights-relu.safetensors": read_weights,
    "model.json": lambda folder: read_model(folder / "model"),
    CHECKPOINT: lambda folder: read_checkpoint(folder / CHECKPOINT),
}


@pytest.mark.parametrize("name", READERS)
def test_readers_of_a_run_refuse_a_sparse_file_before_they_read_it(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    with (tmp_path / name).open("wb") as file:
        file.truncate(3_000_000_000)
    tracemalloc.start()
    with pytest.raises(AppError) as error:
        READERS[name](tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert re.search(
        r"larger than [0-9,]+ bytes, more than is read of such a file", f"{error.value}{capsys.readouterr()}"
    )
    assert peak < 10_000_000


def test_a_line_of_the_metrics_has_a_largest_length(tmp_path: Path):
    (tmp_path / "metrics.jsonl").write_bytes(b" " * 2_000_000)
    with pytest.raises(FileError, match=r"metrics.jsonl, line 1: it is longer than 1,048,576 bytes"):
        list(read_events(tmp_path))


def test_a_file_is_read_up_to_a_limit(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"12345")
    assert read_file(tmp_path / "x") == read_file(tmp_path / "x", 5) == b"12345"
    with pytest.raises(FileError, match="x is larger than 4 bytes, more than is read of such a file"):
        read_file(tmp_path / "x", 4)
    with (tmp_path / "x").open("wb") as file:
        file.truncate(1 << 42)  # sparse: it takes no room on the disk
    with pytest.raises(FileError, match="x is larger than"):
        app.load(tmp_path / "x")
    assert read_file("/proc/self/status").startswith(b"Name:")  # its size is said to be 0
    with pytest.raises(FileError, match="larger than 10 bytes"):
        read_file("/proc/self/status", 10)


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "x")
    with pytest.raises(MissingFileError):
        app.load(tmp_path / "x")


OLD, NEW = b"old" * 100_000, b"new" * 100_000


def killed(work: Callable[[], object], after: float) -> None:
    """Run `work` in a process that is killed after some seconds."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.parametrize("moment", ["replace", "fsync"])
def test_a_process_killed_while_writing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
):
    path = tmp_path / "a" / "file"
    write_whole(path, OLD)
    with monkeypatch.context() as patch:
        patch.setattr(os, moment, lambda *_: time.sleep(60))
        killed(lambda: write_whole(path, NEW), 0.2)
    assert path.read_bytes() == OLD
    write_whole(path, NEW)
    assert path.read_bytes() == NEW


@pytest.mark.slow
def test_a_process_killed_at_any_moment_leaves_a_whole_file(tmp_path: Path):
    path = tmp_path / "file"
    write_whole(path, OLD)
    moments = random.Random(0)

    def write_again_and_again() -> None:
        while True:
            write_whole(path, NEW)
            write_whole(path, OLD)

    for _ in range(12):
        killed(write_again_and_again, moments.uniform(0, 0.01))
        assert path.read_bytes() in (OLD, NEW)


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_whole(tmp_path / "file", OLD)
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(FileError, match="file cannot be written: No space left on device"):
        write_whole(tmp_path / "file", NEW)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", OLD)]


@pytest.mark.parametrize("target", ["pipe", "/dev/full"])
def test_only_regular_files_are_replaced(tmp_path: Path, target: str):
    os.mkfifo(tmp_path / "pipe")
    link = tmp_path / "link"
    link.symlink_to(target)  # root may replace a device
    kind = "a pipe" if target == "pipe" else "a device"
    for write in (lambda path: write_whole(path, b"x"), lambda path: app.save({}, path)):
        with pytest.raises(FileError, match=f"link is {kind}, which is not replaced; name a file"):
            write(link)
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


def test_equal_values_are_equal_bytes(tmp_path: Path):
    values = {"a": np.arange(6.0).reshape(2, 3), "b": [1, "é"], "c": np.ones(1, np.uint8)}
    written = set()
    for _ in range(8):  # three words have six orders
        app.save(values, tmp_path / "x")
        write_weights(tmp_path / "weights-a.safetensors", "my_ops.py:a", {"w": values["a"]})
        written.add((tmp_path / "x").read_bytes() + (tmp_path / "weights-a.safetensors").read_bytes())
    assert len(written) == 1
    assert app.load(tmp_path / "x", return_numpy=True)["b"] == [1, "é"]
    assert read_weights(tmp_path)["my_ops.py:a"].arrays["w"].tolist() == values["a"].tolist()
