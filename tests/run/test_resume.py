"""A resumed run ends as an uninterrupted one, and a run that can be resumed says how."""

import fcntl
import os
import sys
from pathlib import Path

import pytest
from interrupted_runs import LONGER
from runs_of_train import assert_same_results

from app import relu
from app.experiment.train_command import main
from app.files import write_whole
from app.run.activation import Activation
from app.run.checkpoints import CHECKPOINT
from app.run.resume import how_to_resume

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("piece", [1, 8, 9, 18, 24])
def test_an_interrupted_run_prints_how_to_resume_it_and_resumes_to_the_same_results(interrupted, resume, whole, piece):
    run = interrupted(piece)
    assert (run.status, run.err) == (130, "interrupted. Resume with:\nopsmith train --resume run\n")
    assert {file.name for file in run.folder.iterdir()} == {
        *("config.yaml", "metrics.jsonl"),
        *([CHECKPOINT] if piece > 8 else []),  # two operators with four pieces each make an epoch
    }
    status, out, err = resume()
    assert (status, err) == (0, "")
    line = f"Resuming in epoch {1 + (piece - 1) // 8}/3." if piece > 8 else "There is no checkpoint yet, so the run st"
    assert line in out
    assert (run.folder / "summary.txt").read_text() in out
    assert not (run.folder / CHECKPOINT).exists()
    assert_same_results(run.folder, whole())
    events = [event["event"] for event in run.metrics]
    assert (events[0], events.count("start")) == ("start", 1)


@pytest.mark.parametrize("written", ["summary.txt", "weights-relu.safetensors"])
def test_a_run_that_is_killed_at_its_end_resumes_to_the_same_results(train, resume, whole, monkeypatch, written):
    class Killed(BaseException):
        pass

    def killed(path, *words, **options):
        write_whole(path, *words, **options)
        if path.name == written:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("app.run.folder.write_whole", killed)
        patch.setattr("app.run.weights.write_whole", killed)
        with pytest.raises(Killed):
            train(*LONGER)
    status, out, _ = resume()
    assert status == 0
    assert "All epochs are trained; what follows them is done again." in out
    run = Path("run")
    assert not (run / CHECKPOINT).exists()
    assert_same_results(run, whole())


def test_the_resume_command_is_quoted_and_names_the_python_of_this_folder(interrupted, monkeypatch):
    assert "Resume with:\nopsmith train --resume 'my run'\n" in interrupted(folder="my run").err
    monkeypatch.setattr(sys, "executable", str(Path.cwd() / ".venv/bin/python"))
    assert "Resume with:\n.venv/bin/opsmith train --resume run\n" in interrupted().err


def test_the_resume_command_fits_a_terminal_of_80_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv/bin/python"))
    usual = how_to_resume(Path("runs/custom.relu-relu-20261129-022858"), [])
    assert usual == "Resume with:\n.venv/bin/opsmith train --resume runs/custom.relu-relu-20261129-022858"
    own = Activation("my_ops.py:swish", relu, "my_ops.py")
    assert how_to_resume(Path("runs/compare-relu-custom.relu-swish-20261129-022858"), [own], "compare") == (
        "Resume with:\n.venv/bin/opsmith compare \\\n"
        "    --resume runs/compare-relu-custom.relu-swish-20261129-022858 \\\n    --custom-op my_ops.py"
    )


def no_checkpoint(run):
    (run / CHECKPOINT).unlink()


def half_an_event_more(run):
    with (run / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"event": "iteration", "oper')


def half_the_metrics(run):
    os.truncate(run / "metrics.jsonl", (run / "metrics.jsonl").stat().st_size // 2)


@pytest.mark.parametrize(
    ("damage", "messages"),
    [
        (no_checkpoint, ["There is no checkpoint yet, so the run starts from the beginning."]),
        (half_an_event_more, ["Resuming in epoch 3/3."]),
        (half_the_metrics, ["Resuming in epoch 3/3."]),
    ],
)
def test_a_damaged_run_resumes_to_the_same_results(interrupted, resume, whole, damage, messages):
    run = interrupted(18)
    damage(run.folder)
    status, out, _ = resume()
    assert status == 0
    assert all(message in out for message in messages)
    assert_same_results(run.folder, whole())


def test_a_damaged_checkpoint_is_refused(interrupted, resume):
    file = interrupted(18).folder / CHECKPOINT
    os.truncate(file, 5000)
    status, _, err = resume()
    assert status == 1
    assert err.startswith("error: run/checkpoint.safetensors was not")
    assert "the run starts from the beginning when it is resumed" in err
    file.unlink()
    assert resume()[0] == 0


def test_a_finished_run_has_nothing_to_resume(train, resume):
    train(*LONGER)
    status, out, err = resume()
    assert (status, out) == (1, "")
    assert err.startswith("error: the run in run is finished: there is nothing to resume. To train with other settings")
    again = err.partition("such as ")[2].split()
    assert again[:3] == ["--config", "run/config.yaml", "train.epochs=6"]
    assert train(*again[:3], folder="again").status == 0


def test_more_epochs_give_the_results_of_a_run_that_was_started_with_them(interrupted, resume, tmp_path, whole):
    interrupted()
    assert resume("train.epochs=5")[0] == 0
    assert_same_results(tmp_path / "run", whole("train.epochs=5"))
    assert "  epochs: 5\n" in (tmp_path / "run" / "config.yaml").read_text()


# --- Folders that cannot be resumed ---


@pytest.mark.parametrize("missing", ["config.yaml", "metrics.jsonl"])
def test_a_folder_without_a_run_is_refused(interrupted, resume, missing):
    (interrupted().folder / missing).unlink()
    message = f"error: run holds no run that can be resumed: it has no {missing}. Start a new run\n"
    assert resume() == (1, "", message)


def test_a_folder_that_is_not_there_is_named(resume, tmp_path):
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        message = f"error: no such folder: {name}; name the folder of a run, such as those in runs/\n"
        assert resume(folder=name) == (1, "", message)
    for seconds, name in enumerate(("b-1", "a-2")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.yaml").touch()
        os.utime(tmp_path / "runs" / name / "config.yaml", (seconds, seconds))
    assert resume(folder="nowhere") == (1, "", "error: no such folder: nowhere; the latest run here is runs/a-2\n")


def test_two_processes_cannot_resume_one_run(interrupted, resume):
    with (interrupted().folder / "metrics.jsonl").open("a") as metrics:
        fcntl.flock(metrics, fcntl.LOCK_EX)
        assert resume() == (1, "", "error: another process is using run; wait for it, or end it\n")
    assert resume()[0] == 0


def test_resume_and_config_exclude_each_other(capsys):
    with pytest.raises(SystemExit):
        main(["--resume", "run", "--config", "quick.yaml"])
    assert "not allowed with argument" in capsys.readouterr().err


# --- Full disks ---


@pytest.mark.parametrize(
    ("last", "refused"),
    [
        ("config.yaml", "checkpoint.safetensors"),
        ("weights-custom.relu.safetensors", "weights-relu.safetensors"),
    ],
)
def test_a_full_disk_is_named_and_the_run_resumes_when_there_is_room(
    train, resume, tmp_path, monkeypatch, whole, last, refused
):
    sync = os.fsync

    def sync_until_the_last(handle):
        if (tmp_path / "run" / last).exists():
            raise OSError(28, "No space left on device")
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", sync_until_the_last)
        run = train(*LONGER)
    assert (run.status, run.err) == (1, f"error: run/{refused} cannot be written: No space left on device\n")
    assert run.out.endswith("Resume with:\nopsmith train --resume run\n")
    assert not (run.folder / refused).exists()
    status, out, _ = resume()
    assert status == 0
    assert ("All epochs are trained" in out) == (last != "config.yaml")
    assert_same_results(run.folder, whole())
