"""The end of a run: it leaves a report behind, and is no failure when it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from made_runs import dataset, made_run

from app.report import report
from app.run import answers
from app.run.run import report_run
from app.run.training import Trained


class Heard:
    """A console that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        yield

    def warn(self, text: str) -> None:
        self.warned.append(text)


def result(scores: np.ndarray) -> list[Trained]:
    return [Trained("relu", "", [], None, np.zeros(0), "", [], {}, scores)]


def right() -> list[Trained]:
    """The result of a network that knows every digit."""
    return result(np.eye(10, dtype=np.float32)[dataset().test_labels])


def lost() -> list[Trained]:
    """The result of a network whose weights are infinite."""
    return result(np.eye(10, dtype=np.float32)[dataset().test_labels] * np.float32("inf"))


def test_a_run_leaves_its_answers_and_a_report(tmp_path: Path):
    folder, console = made_run(tmp_path / "run", ("relu",)), Heard()
    report_run(folder, dataset(), right, console, report.write_report)  # type: ignore[arg-type]
    assert (console.said, console.warned) == ([f"The report is {folder}/report.html"], [])
    found = answers.read(folder)
    assert found is not None
    assert found.right("relu").all()


def test_what_goes_wrong_with_a_report_is_told_and_ends_nothing(tmp_path: Path):
    def refuse(folder: Path) -> Path:
        raise OSError(28, "No space left on device")

    folder, console = made_run(tmp_path / "run", ("relu",)), Heard()
    report_run(folder, dataset(), right, console, refuse)  # type: ignore[arg-type]
    assert console.said == []
    assert console.warned == ["note: the report of this run is incomplete: [Errno 28] No space left on device"]


def test_a_run_that_is_to_leave_none_leaves_none(tmp_path: Path):
    report_run(tmp_path, dataset(), right, Heard(), None)  # type: ignore[arg-type]
    assert [file.name for file in tmp_path.iterdir()] == ["SHA256SUMS"]


@pytest.mark.filterwarnings("error")
def test_a_run_that_was_stopped_in_its_first_epoch_leaves_a_report_as_well(tmp_path: Path):
    folder, console = made_run(tmp_path / "run", ("relu",), costs=False), Heard()
    metrics = folder / "metrics.jsonl"
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:4]))
    report_run(folder, dataset(), right, console, report.write_report)  # type: ignore[arg-type]
    assert (console.said, console.warned) == ([f"The report is {folder}/report.html"], [])


@pytest.mark.filterwarnings("error")
def test_a_network_that_has_lost_itself_in_infinity_has_a_report_as_well(tmp_path: Path):
    folder, console = made_run(tmp_path / "run", ("relu",)), Heard()
    report_run(folder, dataset(), lost, console, report.write_report)  # type: ignore[arg-type]
    assert (console.said, console.warned) == ([f"The report is {folder}/report.html"], [])
