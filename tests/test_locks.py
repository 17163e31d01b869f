"""Files are whole even if a process is killed while writing, and its leftovers are removed later."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from app.errors import FileError
from app.files import write_whole
from app.locks import shared_lock

OLD, NEW = b"old" * 100_000, b"new" * 100_000


def in_a_child(work: Callable[[], object]) -> int:
    """Start `work` in a process of its own; gives its number."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    return child


def ended(child: int) -> int:
    """The signal that a process was ended by."""
    return os.WTERMSIG(os.waitpid(child, 0)[1])


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leftovers(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name != "file")


@pytest.mark.parametrize("moment", ["replace", "fsync"])
def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path, monkeypatch, moment):
    path = tmp_path / "file"
    write_whole(path, OLD)
    with monkeypatch.context() as patch:
        patch.setattr(os, moment, die)
        for _ in range(3):
            assert ended(in_a_child(lambda: write_whole(path, NEW))) == signal.SIGKILL
            assert path.read_bytes() == OLD
            assert len(leftovers(tmp_path)) == 1
    write_whole(path, NEW)
    assert path.read_bytes() == NEW
    assert leftovers(tmp_path) == []


@pytest.mark.slow
def test_a_process_killed_at_any_moment_leaves_a_whole_file(tmp_path):
    path = tmp_path / "file"
    write_whole(path, OLD)
    moments = random.Random(0)

    def write_again_and_again() -> None:
        while True:
            write_whole(path, NEW)
            write_whole(path, OLD)

    for _ in range(25):
        child = in_a_child(write_again_and_again)
        time.sleep(moments.uniform(0, 0.01))
        os.kill(child, signal.SIGKILL)
        assert ended(child) == signal.SIGKILL
        assert path.read_bytes() in (OLD, NEW)
        assert len(leftovers(tmp_path)) <= 1
    write_whole(path, NEW)
    assert leftovers(tmp_path) == []


def test_a_file_that_another_process_writes_is_kept(tmp_path, monkeypatch):
    path, go_on = tmp_path / "file", tmp_path / "go on"
    move = os.replace

    def wait_and_move(*names: Path) -> None:
        while not go_on.exists():
            time.sleep(0.001)
        move(*names)
        os._exit(0)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", wait_and_move)
        child = in_a_child(lambda: write_whole(path, NEW))
    while not leftovers(tmp_path):
        time.sleep(0.001)
    write_whole(path, OLD)
    assert len(leftovers(tmp_path)) == 1
    assert path.read_bytes() == OLD
    go_on.touch()
    assert os.waitpid(child, 0)[1] == 0
    assert path.read_bytes() == NEW
    assert leftovers(tmp_path) == ["go on"]


def test_only_the_first_holder_of_a_shared_lock_clears(tmp_path):
    cleared = []
    with (
        shared_lock(tmp_path, lambda: cleared.append("first")),
        shared_lock(tmp_path, lambda: cleared.append("second")),
    ):
        assert cleared == ["first"]
    with shared_lock(tmp_path, lambda: cleared.append("third")):
        assert cleared == ["first", "third"]


@pytest.mark.parametrize("locks", [True, False])
def test_only_leftovers_of_the_same_file_are_cleared_and_none_without_locks(tmp_path, monkeypatch, locks):
    others = [".file.note", f".other.{'0' * 32}", f".file.{'0' * 31}", f"file.{'0' * 32}"]
    leftover = f".file.{'0' * 32}"
    for name in [*others, leftover]:
        (tmp_path / name).touch()
    if not locks:
        monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError("no locks available")))
    write_whole(tmp_path / "file", NEW)
    assert (tmp_path / "file").read_bytes() == NEW
    assert leftovers(tmp_path) == sorted(others if locks else [*others, leftover])


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_whole(tmp_path / "file", OLD)
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(FileError, match="file cannot be written: No space left on device"):
        write_whole(tmp_path / "file", NEW)
    assert (tmp_path / "file").read_bytes() == OLD
    assert leftovers(tmp_path) == []
