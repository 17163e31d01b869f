"""Nothing in the folder of a run is opened through a symbolic link: in a stranger's, it could lead anywhere."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from app.__main__ import main
from app.errors import AppError, FileError
from app.experiment.train_command import main as train_py
from app.files import open_to_append
from app.run import answers, comparison, events, profiles
from app.run.checkpoints import read_checkpoint
from app.run.config import load_kept_config
from app.run.folder import read_weights
from app.saving import load, save

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def _stopped(tmp_path_factory):
    return tmp_path_factory.mktemp("stopped") / "run"


@pytest.fixture
def stopped(train, tmp_path, capsys, _stopped):
    """The folder of a run that can be resumed and has a report."""
    if not _stopped.exists():
        run = train("report=true", "train.epochs=1", "model.activation=custom.swish")
        assert run.status == 0
        shutil.move(run.folder, _stopped)
    capsys.readouterr()
    return Path(shutil.copytree(_stopped, tmp_path / "run"))


def linked(file):
    """Replace a file or a folder by a link to it."""
    away = file.parent.parent / f"elsewhere-{file.name}"
    file.rename(away)
    file.symlink_to(away)
    return away


READERS = {
    "config.yaml": lambda folder: load_kept_config(folder / "config.yaml"),
    "metrics.jsonl": lambda folder: list(events.read(folder)),
    "answers.safetensors": answers.read,
    "operators.json": profiles.read,
    "comparison.json": comparison.read,
    "weights-relu.safetensors": read_weights,
}


@pytest.mark.parametrize("name", READERS)
def test_no_reader_of_a_run_follows_a_link(stopped, name):
    if name == "comparison.json":
        (stopped / name).write_text("{}")
    linked(stopped / name)
    with pytest.raises(AppError, match=f"{name} is a symbolic link, expected a file; replace it by a copy"):
        READERS[name](stopped)


def test_no_command_reads_a_run_through_a_link(stopped, capsys):
    for name in ("model.json", "model.safetensors"):
        away = linked(stopped / name)
        assert main(["predict", str(stopped), "zero.png"]) == 1
        assert f"{name} is a symbolic link" in capsys.readouterr().err
        shutil.move(away, stopped / name)
    linked(stopped / "config.yaml")
    for command in (["report", str(stopped)], ["demo", str(stopped)]):
        assert main(command) != 0
        assert "config.yaml is a symbolic link" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["metrics.jsonl", "config.yaml", "summary.txt", "checkpoints", "notes"])
def test_a_folder_with_a_link_is_not_resumed_and_what_it_leads_to_stays(stopped, capsys, name):
    (stopped / "notes").write_text("mine\n")
    away = linked(stopped / name)
    before = sorted(os.listdir(away)) if away.is_dir() else away.read_bytes()
    assert train_py(["--resume", str(stopped), "train.epochs=2"]) == 1
    assert f"run has {name}, which a run does not make: symbolic links could lead anywhere" in capsys.readouterr().err
    assert (sorted(os.listdir(away)) if away.is_dir() else away.read_bytes()) == before


def test_a_checkpoint_is_not_read_through_a_link(stopped):
    (newest, *_) = sorted((stopped / "checkpoints").iterdir(), reverse=True)
    linked(newest)
    with pytest.raises(FileError, match="is a symbolic link"):
        read_checkpoint(newest)
    linked(stopped / "checkpoints")
    with pytest.raises(FileError, match="checkpoints is a symbolic link, expected a folder"):
        read_checkpoint(newest)


def test_text_is_never_appended_through_a_link(tmp_path):
    (tmp_path / "mine").write_text("mine\n")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(FileError, match="link is a symbolic link, expected a file"):
        open_to_append(tmp_path / "link")
    assert (tmp_path / "mine").read_text() == "mine\n"


@pytest.mark.parametrize(
    "line", [b'{"event": "x; touch made #"}', b"touch made", b'{"event": "epoch", "operator": "relu", "seconds": -1}']
)
def test_only_events_are_written_from_a_checkpoint_into_the_metrics(stopped, capsys, line):
    (newest, *_) = sorted((stopped / "checkpoints").iterdir(), reverse=True)
    data = load(newest, return_numpy=True)
    data["metrics"] = np.frombuffer(data["metrics"].tobytes() + line + b"\n", np.uint8)
    save(data, newest)
    before = {file.name: file.read_bytes() for file in stopped.iterdir() if file.is_file()}
    assert train_py(["--resume", str(stopped), "train.epochs=2"]) == 1
    assert "metrics of" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in stopped.iterdir() if file.is_file()} == before
