"""A file is whole or not there, whoever dies while writing it; and what the dead leave behind is cleared away."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.errors import FileError
from app.files import write_whole
from app.locks import lock, shared_lock

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
def test_whoever_is_killed_while_writing_leaves_the_old_file_and_no_heap(tmp_path, monkeypatch, moment):
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
def test_killed_at_random_moments_the_file_is_one_or_the_other(tmp_path):
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


def test_what_another_is_writing_now_is_left_alone(tmp_path, monkeypatch):
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


def test_only_leftovers_of_the_same_file_are_cleared(tmp_path):
    others = [".file.note", f".other.{'0' * 32}", f".file.{'0' * 31}", f"file.{'0' * 32}"]
    for name in [*others, f".file.{'0' * 32}"]:
        (tmp_path / name).touch()
    write_whole(tmp_path / "file", NEW)
    assert leftovers(tmp_path) == sorted(others)


def test_a_claim_is_for_all_and_clears_for_the_first_alone(tmp_path):
    cleared = []
    with (
        shared_lock(tmp_path, lambda: cleared.append("first")),
        shared_lock(tmp_path, lambda: cleared.append("second")),
    ):
        assert cleared == ["first"]
    with shared_lock(tmp_path, lambda: cleared.append("third")):
        assert cleared == ["first", "third"]


def test_where_there_are_no_locks_files_are_written_and_nothing_is_cleared(tmp_path, monkeypatch):
    import fcntl

    def refuse(*_: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    leftover = tmp_path / f".file.{'0' * 32}"
    leftover.touch()
    write_whole(tmp_path / "file", NEW)
    assert (tmp_path / "file").read_bytes() == NEW
    assert leftover.exists()


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_whole(tmp_path / "file", OLD)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="file cannot be written: No space left on device"):
        write_whole(tmp_path / "file", NEW)
    assert (tmp_path / "file").read_bytes() == OLD
    assert leftovers(tmp_path) == []


def test_an_open_file_is_held_by_one_until_it_is_closed_or_its_process_dies(tmp_path, monkeypatch):
    monkeypatch.setattr("app.locks._PATIENCE", 0.1)
    path = tmp_path / "file"
    with path.open("w") as one, path.open("w") as other:
        assert lock(one)
        assert lock(one)
        assert not lock(other)
        one.close()
        assert lock(other)

    def hold_and_die() -> None:
        with path.open("w") as file:
            assert lock(file)
            die()

    assert ended(in_a_child(hold_and_die)) == signal.SIGKILL
    with path.open("w") as again:
        assert lock(again)
