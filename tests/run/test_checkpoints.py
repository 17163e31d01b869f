"""The files of checkpoints: what they hold, when they are written, which are kept, and that damage is found."""

import os
import random
import re
import signal

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


def made(start=SOMEWHERE, metrics=b'{"event": "x"}\n'):
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


def plain(value):
    """A checkpoint, or a value of one, as what can be compared."""
    if isinstance(value, Checkpoint):
        value = msgspec.structs.asdict(value)
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.tobytes()
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("metrics", [b"", b'{"event": "x"}\n' * 5])
def test_a_checkpoint_reads_back(tmp_path, metrics):
    whole = made(metrics=metrics)
    write_checkpoint(tmp_path / "file", whole)
    found = read_checkpoint(tmp_path / "file")
    assert plain(found) == plain(whole)
    assert isinstance(found.start, Start)


def test_flipped_bits_and_lost_ends_are_found(tmp_path):
    file = tmp_path / "checkpoints" / "000001.safetensors"
    write_checkpoint(file, made())
    content, draw, expected = file.read_bytes(), random.Random(0), plain(read_checkpoint(file))
    for place in [*range(24), *(draw.randrange(len(content)) for _ in range(400))]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << draw.randrange(8)
        file.write_bytes(damaged)
        try:
            found = read_checkpoint(file)
        except AppError:
            continue
        assert plain(found) == expected  # the bit means nothing
    for length in [0, 1, 7, 8, 9, len(content) - 1, *(draw.randrange(len(content)) for _ in range(50))]:
        file.write_bytes(content[:length])
        with pytest.raises(FileError):
            read_checkpoint(file)


def test_other_files_are_refused(tmp_path):
    fields = {"kind": "opsmith.checkpoint", "version": 1, **msgspec.structs.asdict(made())}
    values = {
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
    for name in (*values, "a folder", "a pickle", "a pipe", "nothing"):
        with pytest.raises(FileError, match=name):
            read_checkpoint(tmp_path / name)


def test_a_checkpoint_of_a_newer_release_is_refused_and_not_skipped(tmp_path):
    fields = {"kind": "opsmith.checkpoint", "version": 2, **msgspec.structs.asdict(made())}
    save(fields, tmp_path / "checkpoints" / "000001.safetensors")
    with pytest.raises(AppError, match="has format version 2; this release reads version 1"):
        newest(tmp_path, pytest.fail)


# --- Which are written, kept and used ---

LOSSES = np.zeros(1, np.float32)
RESULT = Epoch("relu", 0, 0.5, 0.9, 0.3)


def keeper(run, every=None, interruption=None):
    return Checkpoints(run, made, 2, every, interruption or Interruption())


def place(turn=0, epoch=0, done=20):
    return Position(Contestant("relu", None), turn, epoch, 20, done, 0.5)


def names(run):
    return sorted(path.name for path in (run / "checkpoints").glob("*"))


def starts(run):
    return [read_checkpoint(run / "checkpoints" / name).start for name in names(run)]


def test_checkpoints_are_written_after_an_epoch_of_all_and_every_so_many_iterations(tmp_path):
    checkpoints = keeper(tmp_path / "a")
    checkpoints.piece(place(), LOSSES, LOSSES)
    checkpoints.epoch(place(0), RESULT)
    assert not (tmp_path / "a" / "checkpoints").exists()
    checkpoints.epoch(place(1), RESULT)
    assert starts(tmp_path / "a") == [Start(1, 0, 0, 0.0)]
    checkpoints = keeper(tmp_path / "b", every=10)
    for done in (1, 9, 10, 11, 20):
        checkpoints.piece(place(1, 4, done), LOSSES, LOSSES)
    assert starts(tmp_path / "b") == [Start(4, 1, 10, 0.5), Start(4, 1, 20, 0.5)]


def test_a_checkpoint_is_written_wherever_the_run_is_stopped(tmp_path):
    interruption = Interruption()
    checkpoints = keeper(tmp_path, interruption=interruption)
    interruption.note(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.piece(place(0, 4, 3), LOSSES, LOSSES)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.epoch(place(0, 4), RESULT)
    assert starts(tmp_path) == [Start(4, 0, 3, 0.5), Start(4, 1, 0, 0.0)]


def test_a_run_that_is_stopped_while_a_checkpoint_is_written_trains_to_the_next(train, tmp_path, monkeypatch):
    piece = Checkpoints.piece

    def signalled(self, position, *given):
        piece(self, position, *given)
        if position.done == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Checkpoints, "piece", signalled)
    assert train("train.checkpoint_every=1").status == 130
    assert newest(tmp_path / "run", pytest.fail).start[:3] == (0, 0, 2)


def written(run, count):
    """The files of so many epochs."""
    checkpoints = keeper(run)
    for epoch in range(count):
        checkpoints.epoch(place(1, epoch), RESULT)
    return [run / "checkpoints" / name for name in names(run)]


def test_the_last_three_are_kept_and_other_files_left_alone(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "notes.txt").touch()
    written(tmp_path, 5)
    kept = ["000003.safetensors", "000004.safetensors", "000005.safetensors", "notes.txt"]
    assert names(tmp_path) == kept
    keeper(tmp_path).epoch(place(1, 5), RESULT)  # another process continues the numbers
    assert names(tmp_path) == [*kept[1:3], "000006.safetensors", "notes.txt"]


def test_the_one_before_a_damaged_checkpoint_is_used_and_the_damage_named(tmp_path):
    first, second, third = written(tmp_path, 3)
    os.truncate(third, third.stat().st_size // 2)
    notes = []
    assert newest(tmp_path / "checkpoints", notes.append) is None  # where there are none
    assert newest(tmp_path, notes.append).start == Start(2)
    (note,) = notes
    assert note.startswith(f"note: a checkpoint cannot be used, so the one before it is: load: {third} was not")
    second.write_bytes(b"")
    assert newest(tmp_path, notes.append).start == Start(1)
    first.write_bytes(first.read_bytes()[:-100] + bytes(100))
    with pytest.raises(FileError, match=r"no checkpoint in .* is usable; remove that folder to"):
        newest(tmp_path, notes.append)


@pytest.mark.parametrize(
    ("call", "number", "words"), [("fsync", 28, "No space left on device"), ("replace", 30, "Read-only file system")]
)
def test_a_checkpoint_that_cannot_be_written_leaves_the_last_one_whole(tmp_path, monkeypatch, call, number, words):
    (first,) = written(tmp_path, 1)
    before = first.read_bytes()

    def refuse(*_):
        raise OSError(number, words)

    monkeypatch.setattr(os, call, refuse)
    second = tmp_path / "checkpoints" / "000002.safetensors"
    with pytest.raises(FileError, match=f"^{re.escape(f'{second} cannot be written: {words}')}$"):
        written(tmp_path, 1)
    assert names(tmp_path) == [first.name]
    assert first.read_bytes() == before


# --- Random numbers of NumPy and Python ---


def drawn():
    return [random.gauss(0, 1), random.random(), np.random.standard_normal(), np.random.random()]


def test_random_numbers_of_numpy_and_python_continue():
    random.seed(1)
    np.random.seed(1)
    drawn()  # half of a pair of normal numbers is kept for the next call
    state = random_state()
    expected = drawn()
    restore_random_state(state)
    assert drawn() == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"numpy": np.zeros(3, np.uint32)},
        {"numpy.rest": np.array([10**6, 0, 0.0])},
        {"numpy.rest": np.zeros(1)},
        {"python": np.zeros(3, np.uint32)},
        {"python": np.full(625, 2**32 - 1, np.uint32)},
    ],
    ids=["few words", "a far place", "few numbers", "few words of Python", "large words of Python"],
)
def test_wrong_states_of_random_generators_are_errors(wrong):
    with pytest.raises(FileError, match="cannot restore the state of the random generators"):
        restore_random_state({**random_state(), **wrong})
