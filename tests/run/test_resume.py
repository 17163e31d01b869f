"""A run that goes on, as if it had not been interrupted; and how one ends that can go on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interrupted_runs import LONGER, stopped_at
from runs_of_train import assert_same_results

from app.experiment.train_command import main
from app.locks import lock

pytestmark = pytest.mark.slow

Train = Callable[..., Any]


@pytest.mark.parametrize("piece", [1, 4, 8, 9, 18])
def test_after_ctrl_c_it_ends_as_if_there_had_been_none(
    train: Train, resume: Any, tmp_path: Path, piece: int, whole: Any
):
    with stopped_at(piece):
        run = train(*LONGER)
    assert (run.status, run.err) == (130, "interrupted\n")
    assert "\nResume with: python train.py --resume run\n" in run.out
    status, out, err = resume()
    assert (status, err) == (0, "")
    assert "Resuming " in out
    assert "Resume with" not in out
    assert_same_results(tmp_path / "run", whole())
    assert (run.folder / "summary.txt").read_text() in out
    assert "Stopped before" not in out


def test_sigterm_does_the_same_and_is_told_by_the_status(train: Train, resume: Any, tmp_path: Path, whole: Any):
    with stopped_at(5, signal.SIGTERM):
        run = train(*LONGER)
    assert (run.status, run.err) == (143, "terminated\n")
    assert "Resume with: python train.py --resume run\n" in run.out
    assert resume()[0] == 0
    assert_same_results(tmp_path / "run", whole())


def test_the_command_that_goes_on_is_fit_for_a_shell(interrupted: Any):
    assert "Resume with: python train.py --resume 'my run'\n" in interrupted(folder="my run").out


def test_the_command_that_goes_on_names_the_python_of_this_folder(interrupted: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", str(Path.cwd() / ".venv/bin/python"))
    assert "Resume with: .venv/bin/python train.py --resume run\n" in interrupted().out


def test_without_a_checkpoint_it_begins_anew_in_the_same_folder(train: Train, resume: Any, tmp_path: Path, whole: Any):
    train(*LONGER)
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    status, out, _ = resume()
    assert status == 0
    assert "There is no checkpoint yet, so the run starts from the beginning." in out
    assert_same_results(tmp_path / "run", whole())


def test_metrics_after_the_checkpoint_are_dropped_and_lost_ones_come_again(
    interrupted: Any, resume: Any, tmp_path: Path, whole: Any
):
    for damage in (lambda text: f'{text}{{"event": "iteration", "oper', lambda text: text[: len(text) // 2]):
        run = interrupted()
        metrics = run.folder / "metrics.jsonl"
        metrics.write_text(damage(metrics.read_text()))
        assert resume()[0] == 0
        assert_same_results(run.folder, whole())
        shutil.rmtree(run.folder)


def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_used(
    interrupted: Any, resume: Any, tmp_path: Path, whole: Any
):
    run = interrupted(18)
    *_, last = sorted((run.folder / "checkpoints").iterdir())
    os.truncate(last, 5000)
    status, out, _ = resume()
    assert status == 0
    assert f"so the one before it is: load: run/checkpoints/{last.name}" in out
    assert "Resuming custom.relu in epoch 3/3." in out
    assert_same_results(tmp_path / "run", whole())


# --- What is finished ---


def test_a_finished_run_says_so_and_stays_as_it_is(train: Train, resume: Any, tmp_path: Path):
    train(*LONGER)
    shutil.copytree(tmp_path / "run", tmp_path / "before")
    status, out, _ = resume()
    assert status == 0
    assert "This run is finished: 3 of 3 epochs. Its files are written again." in out
    assert_same_results(tmp_path / "run", tmp_path / "before")


def test_what_was_lost_of_its_end_is_written_again(train: Train, resume: Any, tmp_path: Path):
    run = train(*LONGER)
    shutil.copytree(tmp_path / "run", tmp_path / "before")
    (run.folder / "summary.txt").unlink()
    os.truncate(run.folder / "weights-relu.safetensors", 20)
    assert resume()[0] == 0
    assert (run.folder / "summary.txt").exists()
    assert_same_results(tmp_path / "run", tmp_path / "before")


def test_more_epochs_may_follow_as_if_they_had_been_asked_for_from_the_first(
    train: Train, resume: Any, tmp_path: Path, whole: Any
):
    train(*LONGER)
    assert resume("train.epochs=5")[0] == 0
    assert_same_results(tmp_path / "run", whole("train.epochs=5"))
    assert "  epochs: 5\n" in (tmp_path / "run" / "config.yaml").read_text()


# --- Where there is nothing to go on with ---


@pytest.mark.parametrize("missing", ["config.yaml", "metrics.jsonl", None])
def test_a_folder_without_a_run(interrupted: Any, resume: Any, missing: str | None):
    if missing:
        (interrupted().folder / missing).unlink()
    status, out, err = resume()
    assert (status, out) == (1, "")
    assert err.startswith("error: run holds no run that can be resumed: it has no metrics.jsonl or no config.yaml")


def test_a_mistyped_name_is_answered_with_the_newest_runs(train: Train, resume: Any, tmp_path: Path):
    for number in range(4):
        run = train("train.epochs=1", folder=f"runs/{number}")
        os.utime(run.folder / "metrics.jsonl", (number, number))
    for folder in ("runs", "runs/5"):
        assert resume(folder=folder)[2] == (
            f"error: {folder} holds no run that can be resumed: it has no metrics.jsonl or no config.yaml; "
            "the newest runs near it: runs/3, runs/2, runs/1\n"
        )


def test_two_processes_do_not_go_on_with_one_run(interrupted: Any, resume: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.locks._PATIENCE", 0.1)
    run = interrupted()
    with (run.folder / "metrics.jsonl").open("a") as metrics:
        assert lock(metrics)
        status, out, err = resume()
    assert (status, out) == (1, "")
    assert err == "error: another process is using run; wait for it, or end it\n"
    assert resume()[0] == 0


def test_a_configuration_file_and_a_run_exclude_each_other(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--resume", "run", "--config", "quick.yaml"])
    assert "not allowed with argument" in capsys.readouterr().err


# --- What ends a run otherwise ---


def test_a_full_disk_ends_it_clearly_and_room_lets_it_go_on(
    train: Train, resume: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Any
):
    sync, first = os.fsync, tmp_path / "run" / "checkpoints" / "000001.safetensors"

    def second_is_too_much(handle: int) -> None:
        if first.exists():
            raise OSError(28, "No space left on device")
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", second_is_too_much)
        run = train(*LONGER)
    assert run.status == 1
    assert run.err == "error: run/checkpoints/000002.safetensors cannot be written: No space left on device\n"
    assert "Resume with: python train.py --resume run\n" in run.out
    assert [file.name for file in (run.folder / "checkpoints").iterdir()] == ["000001.safetensors"]
    status, out, _ = resume()
    assert status == 0
    assert "Resuming custom.relu in epoch 2/3." in out
    assert_same_results(tmp_path / "run", whole())


def test_a_disk_that_is_full_at_the_very_end_is_told_of_too(
    train: Train, resume: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Any
):
    sync, summary = os.fsync, tmp_path / "run" / "summary.txt"

    def no_more_than_a_summary(handle: int) -> None:
        if summary.exists():
            raise OSError(28, "No space left on device")
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_more_than_a_summary)
        run = train(*LONGER)
    assert run.status == 1
    assert run.err == "error: run/weights-custom.relu.safetensors cannot be written: No space left on device\n"
    assert "\nResume with: python train.py --resume run\n" in run.out
    assert resume()[0] == 0
    assert_same_results(tmp_path / "run", whole())


def test_an_operator_that_fails_leaves_the_checkpoint_and_the_summary(train: Train, tmp_path: Path):
    (tmp_path / "my_ops.py").write_text(
        "import os\nimport app\n\n@app.custom_op\ndef mine(x):\n"
        "    os.environ['CALLS'] = str(int(os.environ.get('CALLS', 0)) + (len(x) > 2))\n"
        "    if int(os.environ['CALLS']) > 25:\n        raise ValueError('the 26th')\n    return x\n\n"
        "@mine.backward\ndef _(dy):\n    return dy\n"
    )
    try:
        run = train(*LONGER, "model.activation=my_ops.py:mine")
    finally:
        os.environ.pop("CALLS", None)
    assert run.status == 1
    assert "the 26th" in run.err
    assert "Resume with" not in run.out
    assert list((run.folder / "checkpoints").iterdir())
    assert "Finished epochs, out of 3" in (run.folder / "summary.txt").read_text()


def test_events_tell_of_each_thing_once(interrupted: Any, resume: Any):
    run = interrupted()
    resume()
    events = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    keys = [tuple(event.get(key) for key in ("event", "operator", "epoch", "iteration")) for event in events]
    assert len(keys) == len(set(keys))
    assert keys[0][0] == "start"
