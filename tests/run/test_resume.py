"""A resumed run ends as an uninterrupted one, and a run that can be resumed says how."""

import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
from interrupted_runs import LONGER
from runs_of_train import assert_same_results

from app.experiment.train_command import main
from app.locks import lock

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("piece", "by", "ended"),
    [
        *((piece, signal.SIGINT, (130, "interrupted\n")) for piece in (1, 4, 8, 9, 18)),
        (5, signal.SIGTERM, (143, "terminated\n")),
    ],
)
def test_a_run_that_a_signal_stops_resumes_to_the_same_results(interrupted, resume, whole, piece, by, ended):
    run = interrupted(piece, by=by)
    assert (run.status, run.err) == ended
    summary = (run.folder / "summary.txt").read_text()
    assert re.search(
        r"^The run was stopped early\. Finished epochs, out of 3: custom\.relu \d, relu \d\.$", summary, re.M
    )
    assert f"{summary}Resume with: python train.py --resume run\n" in run.out
    assert {file.name for file in run.folder.iterdir()} == {
        *("checkpoints", "config.yaml", "metrics.jsonl", "model.json", "model.safetensors"),
        *("summary.txt", "weights-custom.relu.safetensors", "weights-relu.safetensors"),
    }
    status, out, err = resume()
    assert (status, err) == (0, "")
    assert "Resuming " in out
    assert "Resume with" not in out
    assert "Stopped before" not in out
    assert (run.folder / "summary.txt").read_text() in out
    assert_same_results(run.folder, whole())
    events = [event["event"] for event in run.metrics]
    assert (events[0], events.count("start")) == ("start", 1)


def test_the_resume_command_is_quoted_and_names_the_python_of_this_folder(interrupted, monkeypatch):
    assert "Resume with: python train.py --resume 'my run'\n" in interrupted(folder="my run").out
    monkeypatch.setattr(sys, "executable", str(Path.cwd() / ".venv/bin/python"))
    assert "Resume with: .venv/bin/python train.py --resume run\n" in interrupted().out


def no_checkpoint(run):
    shutil.rmtree(run / "checkpoints")


def damaged_checkpoint(run):
    os.truncate(run / "checkpoints" / "000003.safetensors", 5000)


def half_an_event_more(run):
    with (run / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"event": "iteration", "oper')


def half_the_metrics(run):
    os.truncate(run / "metrics.jsonl", (run / "metrics.jsonl").stat().st_size // 2)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (no_checkpoint, ["There is no checkpoint yet, so the run starts from the beginning."]),
        (
            damaged_checkpoint,
            ["so the one before it is: load: run/checkpoints/000003.safe", "Resuming custom.relu in epoch 3/3."],
        ),
        (half_an_event_more, ["Resuming custom.relu in epoch 3/3"]),
        (half_the_metrics, ["Resuming custom.relu in epoch 3/3"]),
    ],
)
def test_a_damaged_run_resumes_to_the_same_results(interrupted, resume, whole, damage, told):
    run = interrupted(18)
    damage(run.folder)
    status, out, _ = resume()
    assert status == 0
    assert all(words in out for words in told)
    assert_same_results(run.folder, whole())


# --- Finished runs ---


def test_updates_that_were_skipped_before_the_interruption_count(train, interrupted, resume, tmp_path):
    (tmp_path / "my_ops.py").write_text("import app\n\ndef lost(x):\n    return x + float('nan')\n")
    words = ("model.activation=my_ops.py:lost", "baseline=null", "train.on_nonfinite=skip")
    assert train(*LONGER, *words, folder="whole").status == 0
    interrupted(3, *words)
    status, out, _ = resume("--custom-op", "my_ops.py")
    assert status == 0
    assert "my_ops.py:lost: 8 of 8 updates of epoch 1 were skipped" in out
    assert_same_results(tmp_path / "run", tmp_path / "whole")


def test_a_finished_run_says_so_and_its_lost_files_are_written_again(train, resume, whole):
    run = train(*LONGER)
    (run.folder / "summary.txt").unlink()
    os.truncate(run.folder / "weights-relu.safetensors", 20)
    status, out, _ = resume()
    assert status == 0
    assert "This run is finished: 3 of 3 epochs. Its files are written again." in out
    assert (run.folder / "summary.txt").exists()
    assert_same_results(run.folder, whole())


def test_more_epochs_give_the_results_of_a_run_that_was_started_with_them(train, resume, tmp_path, whole):
    train(*LONGER)
    assert resume("train.epochs=5")[0] == 0
    assert_same_results(tmp_path / "run", whole("train.epochs=5"))
    assert "  epochs: 5\n" in (tmp_path / "run" / "config.yaml").read_text()


# --- Folders that cannot be resumed ---


def test_a_comparison_is_refused(train, resume):
    folder = train(*LONGER).folder
    (folder / "config.yaml").write_text((folder / "config.yaml").read_text() + "operators: [relu, tanh]\nseeds: 2\n")
    before = sorted((file, file.read_bytes()) for file in folder.rglob("*") if file.is_file())
    status, _, err = resume()
    assert (status, err) == (
        2,
        "error: run holds a comparison, which cannot be resumed: run `compare` again, into a new folder\n",
    )
    assert sorted((file, file.read_bytes()) for file in folder.rglob("*") if file.is_file()) == before


@pytest.mark.parametrize("missing", ["config.yaml", "metrics.jsonl", None])
def test_a_folder_without_a_run_is_refused(interrupted, resume, missing):
    if missing:
        (interrupted().folder / missing).unlink()
    status, out, err = resume()
    assert (status, out) == (1, "")
    assert err.startswith("error: run holds no run that can be resumed: it has no metrics.jsonl or no config.yaml")


def test_a_mistyped_name_is_answered_with_the_newest_runs(train, resume):
    for number in range(4):
        run = train("train.epochs=1", folder=f"runs/{number}")
        os.utime(run.folder / "metrics.jsonl", (number, number))
    for folder in ("runs", "runs/5"):
        assert resume(folder=folder)[2] == (
            f"error: {folder} holds no run that can be resumed: it has no metrics.jsonl or no config.yaml; "
            "the newest runs near it: runs/3, runs/2, runs/1\n"
        )


def test_two_processes_cannot_resume_one_run(interrupted, resume, monkeypatch):
    monkeypatch.setattr("app.locks._PATIENCE", 0.1)
    with (interrupted().folder / "metrics.jsonl").open("a") as metrics:
        assert lock(metrics)
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
        ("checkpoints/000001.safetensors", "checkpoints/000002.safetensors"),
        ("summary.txt", "weights-custom.relu.safetensors"),
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
    assert "\nResume with: python train.py --resume run\n" in run.out
    assert not (run.folder / refused).exists()
    status, out, _ = resume()
    assert status == 0
    assert ("Resuming custom.relu in epoch 2/3." in out) == (last != "summary.txt")
    assert_same_results(run.folder, whole())
