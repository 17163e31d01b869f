"""A run's report, `report.html`: written at the end of the run or on request."""

from __future__ import annotations

from pathlib import Path

from app.files import write_whole
from app.report.page import page
from app.report.record import read
from app.run.steps import warnings_off

PAGE = "report.html"


def write_report(folder: Path) -> Path:
    """Write the report of a run into its folder; return the page."""
    record = read(folder)
    with warnings_off():
        write_whole(folder / PAGE, page(record).encode())
    return folder / PAGE
