"""The last thing that a run does: its networks read the test images once more, and its report is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.data import Dataset
from app.training.config import Config
from app.training.telling.console import Console
from app.training.watcher import Contestant


def leave_report(
    folder: Path, dataset: Dataset, contestants: Sequence[Contestant], config: Config, console: Console
) -> None:
    """Write the report and say where it is. A run is no failure because it has none, so what goes wrong is told."""
    if not config.report:
        return
    from app.reporting.report import keep_answers, write_report  # imported late: the run has other things to do first

    try:
        keep_answers(folder, dataset, contestants, config.train.eval_batch_size)
        console.say(f"The report is {write_report(folder)}")
    except Exception as error:
        console.warn(f"note: there is no whole report of this run: {error}")
