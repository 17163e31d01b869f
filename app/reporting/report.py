"""A run's report, `report.html` and `curves.png`: written when the run has ended, and again whenever one likes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.data import Batches, Dataset
from app.files import write_whole
from app.reporting import answers
from app.reporting.page import page
from app.reporting.record import Record, read
from app.training.stepping.steps import warnings_off
from app.training.watcher import Contestant

PAGE, CURVES = "report.html", "curves.png"


def keep_answers(folder: Path, dataset: Dataset, contestants: Sequence[Contestant], batch_size: int) -> None:
    """Let the networks read the test images, and keep in the run's folder what they answer."""
    tests = Batches(dataset.test_images, dataset.test_labels, None, batch_size)
    with warnings_off():
        scores = {contestant.operator: contestant.learner.scores(tests) for contestant in contestants}
        answers.keep(answers.answers(dataset, scores), folder)


def write_report(folder: Path) -> Path:
    """Make the report of what lies in a run's folder, and put it there; gives the page."""
    record = read(folder)
    with warnings_off():
        write_whole(folder / PAGE, page(record).encode())
        _write_curves(record)
    return folder / PAGE


def _write_curves(record: Record) -> None:
    from app.reporting.curves_png import curves_png  # imported late: matplotlib takes a quarter of a second

    write_whole(record.folder / CURVES, curves_png(record))
