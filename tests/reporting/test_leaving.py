"""The end of a run: it leaves a report behind, and is no failure when it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import config, dataset, made_run

from app.reporting import answers, report
from app.reporting.leaving import leave_report


class Heard:
    """A console that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)


class Pretended:
    """A contestant whose network knows every digit."""

    operator = "relu"
    learner: Any

    def __init__(self) -> None:
        self.learner = self

    def scores(self, batches: Any) -> np.ndarray:
        return np.eye(10, dtype=np.float32)[np.concatenate([labels for _, labels in batches])]


def test_a_run_leaves_its_answers_and_a_report(tmp_path: Path):
    folder, console = made_run(tmp_path / "run", ("relu",)), Heard()
    leave_report(folder, dataset(), [Pretended()], config(["relu"], 3), console)  # type: ignore[list-item, arg-type]
    assert (console.said, console.warned) == ([f"The report is {folder}/report.html"], [])
    found = answers.read(folder)
    assert found is not None
    assert found.right("relu").all()


def test_what_goes_wrong_with_a_report_is_told_and_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(folder: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "write_report", refuse)
    folder, console = made_run(tmp_path / "run", ("relu",)), Heard()
    leave_report(folder, dataset(), [Pretended()], config(["relu"], 3), console)  # type: ignore[list-item, arg-type]
    assert console.said == []
    assert console.warned == ["note: there is no whole report of this run: [Errno 28] No space left on device"]


def test_a_run_that_is_to_leave_none_leaves_none(tmp_path: Path):
    settings = config(["relu"], 3, report=False)
    leave_report(tmp_path, dataset(), [Pretended()], settings, Heard())  # type: ignore[list-item, arg-type]
    assert [file.name for file in tmp_path.iterdir()] == ["SHA256SUMS"]


@pytest.mark.filterwarnings("error")
def test_a_run_that_was_stopped_in_its_first_epoch_leaves_a_report_as_well(tmp_path: Path):
    folder, console = made_run(tmp_path / "run", ("relu",), costs=False), Heard()
    metrics = folder / "metrics.jsonl"
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:4]))
    leave_report(folder, dataset(), [Pretended()], config(["relu"], 3), console)  # type: ignore[list-item, arg-type]
    assert (console.said, console.warned) == ([f"The report is {folder}/report.html"], [])


class Lost(Pretended):
    """A contestant whose network has numbers that are none."""

    def scores(self, batches: Any) -> np.ndarray:
        return super().scores(batches) * np.float32("inf")


@pytest.mark.filterwarnings("error")
def test_a_network_that_has_lost_itself_in_infinity_has_a_report_as_well(tmp_path: Path):
    folder, console = made_run(tmp_path / "run", ("relu",)), Heard()
    leave_report(folder, dataset(), [Lost()], config(["relu"], 3), console)  # type: ignore[list-item, arg-type]
    assert (console.said, console.warned) == ([f"The report is {folder}/report.html"], [])
