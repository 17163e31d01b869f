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


def right(certainty: float = 1.0) -> list[Trained]:
    """The result of a network that knows every digit; with infinite certainty, one whose weights are infinite."""
    scores = np.eye(10, dtype=np.float32)[dataset().test_labels] * np.float32(certainty)
    return [Trained("relu", "", [], None, np.zeros(0), "", [], {}, scores)]


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
@pytest.mark.parametrize("lines", [4, None], ids=["stopped in its first epoch", "lost in infinity"])
def test_a_run_that_went_wrong_has_a_report_as_well(tmp_path: Path, lines: int | None):
    folder, console = made_run(tmp_path / "run", ("relu",), costs=lines is None), Heard()
    metrics = folder / "metrics.jsonl"
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:lines]))
    certainty = 1.0 if lines else np.inf
    report_run(folder, dataset(), lambda: right(certainty), console, report.write_report)  # type: ignore[arg-type]
    assert (console.said, console.warned) == ([f"The report is {folder}/report.html"], [])
