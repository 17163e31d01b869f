"""The checkpoint: what it holds, when it is written, and that damage is found."""

import os
import random
import re

import msgspec
import numpy as np
import pytest

from app import save
from app.errors import AppError, FileError
from app.run.checkpoints import (
    CHECKPOINT,
    Checkpoint,
    Checkpoints,
    random_state,
    read_checkpoint,
    restore_random_state,
    write_checkpoint,
)
from app.run.config import Config
from app.run.folder import RunFolder


def checkpoint(epoch=1, metrics=b'{"event": "x"}\n'):
    state = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "rate": np.array(0.1), "count": np.array(7)}
    return Checkpoint(
        epoch=epoch,
        config={"seed": 3, "train": {"epochs": 2}, "baseline": None},
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
    whole = checkpoint(metrics=metrics)
    write_checkpoint(tmp_path / "file", whole)
    assert plain(read_checkpoint(tmp_path / "file")) == plain(whole)


def test_flipped_bits_and_lost_ends_are_found(tmp_path):
    file = tmp_path / CHECKPOINT
    write_checkpoint(file, checkpoint())
    content, draw, expected = file.read_bytes(), random.Random(0), plain(read_checkpoint(file))
    for place in [*range(24), *(draw.randrange(len(content)) for _ in range(150))]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << draw.randrange(8)
        file.write_bytes(damaged)
        try:
            result = read_checkpoint(file)
        except AppError:
            continue
        assert plain(result) == expected  # the bit means nothing
    for length in [0, 1, 7, 8, 9, len(content) - 1, *(draw.randrange(len(content)) for _ in range(20))]:
        file.write_bytes(content[:length])
        with pytest.raises(FileError):
            read_checkpoint(file)


def test_other_files_are_refused(tmp_path):
    fields = {"kind": "opsmith.checkpoint", "version": 4, **msgspec.structs.asdict(checkpoint())}
    values = {
        "a list": [1, 2],
        "other values": {"w": np.zeros(3)},
        "another kind": {**fields, "kind": "opsmith.values"},
        "no epoch": {**fields, "epoch": None},
        "an epoch before the first": {**fields, "epoch": 0},
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


def test_a_checkpoint_of_another_release_is_refused(tmp_path):
    save({"kind": "opsmith.checkpoint", "version": 3, **msgspec.structs.asdict(checkpoint())}, tmp_path / CHECKPOINT)
    with pytest.raises(AppError, match="has format version 3; this release reads version 4"):
        read_checkpoint(tmp_path / CHECKPOINT)


# --- When it is written ---


def test_there_is_one_checkpoint_which_every_epoch_replaces(tmp_path):
    folder = RunFolder.new(Config(output=str(tmp_path / "run")))
    before = {path.name for path in folder.path.iterdir()}
    checkpoints = Checkpoints(Config(), [], folder)
    for epoch in range(3):
        checkpoints.end_round(epoch)
        assert {path.name for path in folder.path.iterdir()} - before == {CHECKPOINT}
        assert read_checkpoint(folder.path / CHECKPOINT).epoch == epoch + 1


@pytest.mark.parametrize(
    ("call", "number", "message"), [("fsync", 28, "No space left on device"), ("replace", 30, "Read-only file system")]
)
def test_a_checkpoint_that_cannot_be_written_leaves_the_last_one_whole(tmp_path, monkeypatch, call, number, message):
    file = tmp_path / CHECKPOINT
    write_checkpoint(file, checkpoint())
    before = file.read_bytes()

    def refuse(*_):
        raise OSError(number, message)

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(FileError, match=f"^{re.escape(f'{file} cannot be written: {message}')}$"):
        write_checkpoint(file, checkpoint(2))
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]
    assert file.read_bytes() == before


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
