"""The report, `report.html`: written at the end of a run or a comparison, or on request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.files import write_whole
from app.report.page import page
from app.run.comparison import Comparison, compare_runs
from app.run.config import CompareConfig, load_kept_config
from app.run.folder import CONFIG
from app.run.nonfinite import warnings_off
from app.run.record import RunRecord, read_runs

PAGE = "report.html"


def write_report(folder: Path) -> Path:
    """Write the report of the run or the comparison in a folder; return the page."""
    runs, config = read_runs(folder), load_kept_config(folder / CONFIG)
    if isinstance(config, CompareConfig):
        return write_comparison(folder, compare_runs(runs, config.seeds))
    return _write(folder, runs, None)


def write_comparison(folder: Path, comparison: Comparison) -> Path:
    """Write the report of a comparison into a folder; return the page."""
    return _write(folder, comparison.runs, comparison)


def _write(folder: Path, runs: Sequence[RunRecord], comparison: Comparison | None) -> Path:
    with warnings_off():
        write_whole(folder / PAGE, page(runs, comparison).encode())
    return folder / PAGE
