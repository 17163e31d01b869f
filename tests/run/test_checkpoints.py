"""The files of checkpoints: what they hold, when they are written, which are kept, and that damage is found."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from app import save
from app.errors import AppError, FileError
from app.run.callbacks import Contestant, Position
from app.run.checkpoints import (
    Checkpoint,
    Checkpoints,
    newest,
    random_state,
    read_checkpoint,
    restore_random_state,
    write_checkpoint,
)
from app.run.events import Epoch
from app.run.interruption import Interruption
from app.run.loop import Start

SOMEWHERE = Start(1, 1, 20, 0.25)


def made(start: Start = SOMEWHERE, metrics: bytes = b'{"event": "x"}\n') -> Checkpoint:
    state = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "rate": np.array(0.1), "count": np.array(7)}
    return Checkpoint(
        start=start,
        config={"seed": 3, "train": {"epochs": 2}, "baseline": None},
        operators={"relu": None, "my_ops.py:swish": "abc"},
        data="def",
        metrics=np.frombuffer(metrics, np.uint8),
        learners={"relu": state, "my_ops.py:swish": state},
        random_state=random_state(),
    )


def as_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.tobytes()
    return {key: as_plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoints" / "000001.safetensors"
    write_checkpoint(path, made())
    return path


@pytest.mark.parametrize("metrics", [b"", b'{"event": "x"}\n' * 5])
def test_what_is_written_reads_back(tmp_path: Path, metrics: bytes):
    whole = made(metrics=metrics)
    write_checkpoint(tmp_path / "file", whole)
    found = read_checkpoint(tmp_path / "file")
    assert as_plain(msgspec.structs.asdict(found)) == as_plain(msgspec.structs.asdict(whole))
    assert isinstance(found.start, Start)


def test_every_flipped_bit_is_found_or_does_nothing(file: Path, tmp_path: Path):
    content, draw = file.read_bytes(), random.Random(0)
    expected = as_plain(msgspec.structs.asdict(read_checkpoint(file)))
    for place in [*range(24), *(draw.randrange(len(content)) for _ in range(400))]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << draw.randrange(8)
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            found = read_checkpoint(tmp_path / "damaged")
        except AppError:
            continue
        assert as_plain(msgspec.structs.asdict(found)) == expected


def test_whatever_is_cut_off_is_found(file: Path, tmp_path: Path):
    content, draw = file.read_bytes(), random.Random(0)
    for length in [0, 1, 7, 8, 9, len(content) - 1, *(draw.randrange(len(content)) for _ in range(50))]:
        (tmp_path / "cut").write_bytes(content[:length])
        with pytest.raises(FileError):
            read_checkpoint(tmp_path / "cut")


def wrong_files(tmp_path: Path) -> dict[str, Path]:
    fields = {"kind": "opsmith.checkpoint", "version": 1, **msgspec.structs.asdict(made())}
    values: dict[str, Any] = {
        "a list": [1, 2],
        "other values": {"w": np.zeros(3)},
        "another kind": {**fields, "kind": "opsmith.values"},
        "no place": {**fields, "start": None},
        "a place too short": {**fields, "start": ("x",)},
        "one field too few": {key: value for key, value in fields.items() if key != "config"},
        "one field too many": {**fields, "more": 1},
        "no arrays": {**fields, "learners": {"relu": {"w": "text"}}},
        "another type": {**fields, "metrics": "text"},
    }
    for name, value in values.items():
        save(value, tmp_path / name)
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a pickle").write_bytes(b"\x80\x04K\x01.")
    os.mkfifo(tmp_path / "a pipe")
    return {path.name: path for path in tmp_path.iterdir()} | {"nothing": tmp_path / "nothing"}


def test_all_else_is_refused(tmp_path: Path):
    for name, path in wrong_files(tmp_path).items():
        with pytest.raises(FileError, match=name):
            read_checkpoint(path)


def test_one_of_a_newer_release_is_refused_and_not_passed_over(tmp_path: Path):
    fields = {"kind": "opsmith.checkpoint", "version": 2, **msgspec.structs.asdict(made())}
    save(fields, tmp_path / "checkpoints" / "000001.safetensors")
    with pytest.raises(AppError, match="has format version 2; this release reads version 1"):
        newest(tmp_path, pytest.fail)


# --- Which are kept, and which is used ---


def keeper(run: Path, every: int | None = None, interruption: Interruption | None = None) -> Checkpoints:
    return Checkpoints(run, made, 2, every, interruption or Interruption())


def place(turn: int = 0, epoch: int = 0, done: int = 20) -> Position:
    nobody: Any = None
    return Position(Contestant("relu", nobody), turn, epoch, 20, done, 0.5)


def names(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").glob("*"))


LOSSES = np.zeros(1, np.float32)
RESULT = Epoch("relu", 0, 0.5, 0.9, 0.3)


def starts(run: Path) -> list[Start]:
    return [read_checkpoint(run / "checkpoints" / name).start for name in names(run)]


def test_one_is_written_when_all_have_finished_an_epoch(tmp_path: Path):
    checkpoints = keeper(tmp_path)
    checkpoints.piece(place(), LOSSES, LOSSES)
    checkpoints.epoch(place(0), RESULT)
    assert not (tmp_path / "checkpoints").exists()
    checkpoints.epoch(place(1), RESULT)
    assert starts(tmp_path) == [Start(1, 0, 0, 0.0)]


def test_one_is_written_after_every_so_many_iterations(tmp_path: Path):
    checkpoints = keeper(tmp_path, every=10)
    for done in (1, 9, 10, 11, 20):
        checkpoints.piece(place(1, 4, done), LOSSES, LOSSES)
    assert starts(tmp_path) == [Start(4, 1, 10, 0.5), Start(4, 1, 20, 0.5)]


def test_one_is_written_wherever_the_run_is_stopped(tmp_path: Path):
    interruption = Interruption()
    checkpoints = keeper(tmp_path, interruption=interruption)
    interruption.note(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.piece(place(0, 4, 3), LOSSES, LOSSES)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.epoch(place(0, 4), RESULT)
    assert starts(tmp_path) == [Start(4, 0, 3, 0.5), Start(4, 1, 0, 0.0)]


def test_a_run_that_is_stopped_while_a_checkpoint_is_written_goes_on_to_the_next(
    train: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    piece = Checkpoints.piece

    def signalled(self: Checkpoints, position: Position, *given: Any) -> None:
        piece(self, position, *given)
        if position.done == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Checkpoints, "piece", signalled)
    assert train("train.checkpoint_every=1").status == 130
    found = newest(tmp_path / "run", pytest.fail)
    assert found is not None
    assert found.start[:3] == (0, 0, 2)


def test_the_last_three_are_kept_and_others_files_left_alone(tmp_path: Path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "notes.txt").touch()
    checkpoints = keeper(tmp_path)
    for epoch in range(5):
        checkpoints.epoch(place(1, epoch), RESULT)
    kept = ["000003.safetensors", "000004.safetensors", "000005.safetensors", "notes.txt"]
    assert names(tmp_path) == kept
    keeper(tmp_path).epoch(place(1, 5), RESULT)  # another process goes on counting
    assert names(tmp_path) == [*kept[1:3], "000006.safetensors", "notes.txt"]


def written(run: Path, count: int) -> list[Path]:
    checkpoints = keeper(run)
    for epoch in range(count):
        checkpoints.epoch(place(1, epoch), RESULT)
    return [run / "checkpoints" / name for name in names(run)]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-100] ^= 4
    file.write_bytes(content)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


@pytest.mark.parametrize("damage", [flip, cut, lambda file: file.write_bytes(b"")])
def test_a_damaged_one_is_told_of_and_the_one_before_it_is_used(tmp_path: Path, damage: Callable[[Path], Any]):
    first, second, third = written(tmp_path, 3)
    damage(third)
    notes: list[str] = []
    found = newest(tmp_path, notes.append)
    assert found is not None
    assert found.start == Start(2)
    assert len(notes) == 1
    assert notes[0].startswith(f"note: a checkpoint cannot be used, so the one before it is: load: {third} was not")
    damage(second)
    found = newest(tmp_path, notes.append)
    assert found is not None
    assert found.start == Start(1)
    damage(first)
    with pytest.raises(FileError, match=r"no checkpoint in .* is usable; remove that folder to"):
        newest(tmp_path, notes.append)


def test_where_there_is_none_there_is_none(tmp_path: Path):
    assert newest(tmp_path, pytest.fail) is None
    (tmp_path / "checkpoints").mkdir()
    assert newest(tmp_path, pytest.fail) is None


# --- Disks that are full, folders that cannot be written ---


@pytest.mark.parametrize(
    ("call", "number", "words"), [("fsync", 28, "No space left on device"), ("replace", 30, "Read-only file system")]
)
def test_where_none_can_be_written_the_last_one_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, words: str
):
    (first,) = written(tmp_path, 1)
    before = first.read_bytes()

    def refuse(*_: object) -> None:
        raise OSError(number, words)

    monkeypatch.setattr(os, call, refuse)
    second = tmp_path / "checkpoints" / "000002.safetensors"
    with pytest.raises(FileError) as caught:
        keeper(tmp_path).epoch(place(1), RESULT)
    assert str(caught.value) == f"{second} cannot be written: {words}"
    assert names(tmp_path) == [first.name]
    assert first.read_bytes() == before


def test_a_name_that_is_taken_by_a_file(tmp_path: Path):
    (tmp_path / "checkpoints").touch()
    with pytest.raises(FileError, match=r"checkpoints/000001.safetensors cannot be written: "):
        keeper(tmp_path).epoch(place(1), RESULT)


# --- Random numbers that the framework does not know of ---


def test_numbers_of_numpy_and_python_go_on():
    random.seed(1)
    np.random.seed(1)
    random.gauss(0, 1), np.random.standard_normal()  # half of a pair is kept for the next call
    state = random_state()
    expected = [random.gauss(0, 1), random.random(), np.random.standard_normal(), np.random.random()]
    restore_random_state(state)
    assert [random.gauss(0, 1), random.random(), np.random.standard_normal(), np.random.random()] == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"numpy": np.zeros(3, np.uint32)},
        {"numpy.rest": np.array([10**6, 0, 0.0])},
        {"numpy.rest": np.zeros(1)},
        {"python": np.zeros(3, np.uint32)},
        {"python": np.full(625, 2**32 - 1, np.uint32)},
    ],
)
def test_a_state_that_is_none_is_an_error(wrong: dict[str, np.ndarray]):
    with pytest.raises(FileError, match="cannot restore the state of the random generators"):
        restore_random_state({**random_state(), **wrong})
