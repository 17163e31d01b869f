"""The end of a run: it leaves a report behind, and does not fail when it cannot."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_runs import dataset, made_run

from app.report.report import write_report
from app.run import predictions
from app.run.activation import find_activation
from app.run.finish import report_run


def ended(folder: Path, write: Any, certainty: float = 1.0) -> tuple[list[str], list[str]]:
    """What is said and warned of at the end of a run whose network is right, this certainly, about every digit."""
    messages: list[str] = []
    warned: list[str] = []
    console: Any = SimpleNamespace(say=messages.append, warn=warned.append, busy=nullcontext)

    right = np.eye(10, dtype=np.float32)[dataset().test_labels]
    network: Any = SimpleNamespace(scores=lambda images: right * np.float32(certainty))
    report_run(dataset(), [(find_activation("relu"), network)], folder, console, write)
    return messages, warned


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("lines", "certainty"),
    [(None, 1.0), (4, 1.0), (None, np.inf)],
    ids=["finished", "stopped in its first epoch", "infinite weights"],
)
def test_a_run_leaves_its_answers_and_a_report(tmp_path: Path, lines: int | None, certainty: float):
    folder = made_run(tmp_path / "run", ("relu",), costs=lines is None)
    metrics = folder / "metrics.jsonl"
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:lines]))
    assert ended(folder, write_report, certainty) == ([f"The report is {folder}/report.html"], [])
    result = predictions.read_predictions(folder)
    assert result is not None
    assert result.right("relu").all() == np.isfinite(certainty)


def test_a_report_that_cannot_be_written_is_a_note(tmp_path: Path):
    def refuse(folder: Path) -> Path:
        raise OSError(28, "No space left on device")

    note = "note: the report of this run is incomplete: [Errno 28] No space left on device"
    assert ended(made_run(tmp_path / "run", ("relu",)), refuse) == ([], [note])
