"""A run's report, `report.html` and `curves.png`: written at the end of the run or on request."""

from __future__ import annotations

from pathlib import Path

from app.files import write_whole
from app.report.curves_png import curves_png
from app.report.page import page
from app.report.record import read
from app.run.steps import warnings_off

PAGE, CURVES = "report.html", "curves.png"


def write_report(folder: Path) -> Path:
    """Write the report of a run into its folder; return the page."""
    record = read(folder)
    with warnings_off():
        write_whole(folder / PAGE, page(record).encode())
        write_whole(folder / CURVES, curves_png(record))
    return folder / PAGE
