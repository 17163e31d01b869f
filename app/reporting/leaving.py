"""The last thing that a run does: its networks read the test images once more, and its report is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from app.data import Dataset
from app.training.config import Config
from app.training.sums import seal
from app.training.telling.console import Console
from app.training.watcher import Contestant


def leave_report(
    folder: Path, dataset: Dataset, contestants: Sequence[Contestant], config: Config, console: Console
) -> None:
    """Write the report and say where it is, and the hashes of all that the run keeps.

    A run that has no report has not failed, so what goes wrong with it is told.
    """
    if not config.report:
        seal(folder)
        return
    from app.reporting.report import keep_answers, write_report  # imported late: the run has other things to do first

    kept = _told(console, lambda: keep_answers(folder, dataset, contestants, config.train.eval_batch_size))
    seal(folder)
    if kept:
        _told(console, lambda: console.say(f"The report is {write_report(folder)}"))


def _told(console: Console, step: Callable[[], object]) -> bool:
    """Take a step; if it fails, say so. Gives whether it went well."""
    try:
        step()
    except Exception as error:
        console.warn(f"note: there is no whole report of this run: {error}")
        return False
    return True
