"""Nothing in the folder of a run is opened through a symbolic link: in a stranger's, it could lead anywhere."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from app.__main__ import main
from app.errors import AppError, FileError
from app.files import open_to_append
from app.run import events
from app.run.checkpoints import CHECKPOINT
from app.run.config import load_kept_config
from app.run.descriptions import read_descriptions
from app.run.predictions import read_predictions
from app.run.weights import read_weights
from app.saving import load, save

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def _finished(tmp_path_factory):
    return tmp_path_factory.mktemp("finished") / "run"


@pytest.fixture
def finished(train, tmp_path, capsys, _finished):
    """The folder of a run with a report."""
    if not _finished.exists():
        run = train("report=true", "train.epochs=1")
        assert run.status == 0
        shutil.move(run.folder, _finished)
    capsys.readouterr()
    return Path(shutil.copytree(_finished, tmp_path / "run"))


def linked(file):
    """Replace a file or a folder by a link to it."""
    away = file.parent.parent / f"elsewhere-{file.name}"
    file.rename(away)
    file.symlink_to(away)
    return away


READERS = {
    "config.yaml": lambda folder: load_kept_config(folder / "config.yaml"),
    "metrics.jsonl": lambda folder: list(events.read(folder)),
    "predictions.safetensors": read_predictions,
    "operators.json": read_descriptions,
    "weights-relu.safetensors": read_weights,
}


@pytest.mark.parametrize("name", READERS)
def test_no_reader_of_a_run_follows_a_link(finished, name):
    linked(finished / name)
    with pytest.raises(AppError, match=f"{name} is a symbolic link, expected a file; replace it by a copy"):
        READERS[name](finished)


def test_no_command_reads_a_run_through_a_link(finished, capsys):
    away = linked(finished / "weights-relu.safetensors")
    assert main(["predict", str(finished), "zero.png"]) == 1
    assert "weights-relu.safetensors is a symbolic link" in capsys.readouterr().err
    shutil.move(away, finished / "weights-relu.safetensors")
    linked(finished / "config.yaml")
    for command in (["report", str(finished)], ["demo", str(finished)], ["predict", str(finished), "zero.png"]):
        assert main(command) != 0
        assert "config.yaml is a symbolic link" in capsys.readouterr().err


def test_a_run_is_not_resumed_through_a_link_and_what_a_link_leads_to_stays(interrupted, resume):
    folder = interrupted().folder
    for name in ("metrics.jsonl", "config.yaml", "checkpoint.safetensors"):
        away = linked(folder / name)
        before = away.read_bytes()
        status, _, err = resume()
        assert status in (1, 2)
        assert f"{name} is a symbolic link, expected a file" in err
        assert away.read_bytes() == before
        away.replace(folder / name)
    target = folder.parent / "mine"
    for name in ("summary.txt", "weights-relu.safetensors", ".summary.txt.part"):
        target.write_text("mine\n")
        (folder / name).symlink_to(target)
    assert resume()[0] == 0  # the links are replaced
    assert target.read_text() == "mine\n"


def test_a_run_in_a_folder_that_is_named_by_a_link_resumes(interrupted, resume, tmp_path):
    (tmp_path / "latest").symlink_to(interrupted().folder)
    assert resume(folder="latest")[0] == 0


def test_text_is_never_appended_through_a_link(tmp_path):
    (tmp_path / "mine").write_text("mine\n")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(FileError, match="link is a symbolic link, expected a file"):
        open_to_append(tmp_path / "link")
    assert (tmp_path / "mine").read_text() == "mine\n"


@pytest.mark.parametrize(
    "line", [b'{"event": "x; touch made #"}', b"touch made", b'{"event": "epoch", "operator": "relu", "seconds": -1}']
)
def test_only_events_are_written_from_a_checkpoint_into_the_metrics(interrupted, resume, line):
    folder = interrupted().folder
    data = load(folder / CHECKPOINT, return_numpy=True)
    data["metrics"] = np.frombuffer(data["metrics"].tobytes() + line + b"\n", np.uint8)
    save(data, folder / CHECKPOINT)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    status, _, err = resume()
    assert status == 1
    assert "metrics of" in err
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
