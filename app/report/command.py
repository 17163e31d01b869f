"""`python -m app report`: write the report of a run from its folder, or an index over a folder of runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.errors import MissingFileError
from app.printing import say
from app.report.index import runs_in, write_index
from app.report.report import write_report
from app.run.events import METRICS
from app.run.folder import UNCHECKED, check_sums


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the folder of a run, or a folder of runs, such as runs/")


def run(options: argparse.Namespace) -> int:
    """Write the report or the index, and print its path."""
    folder: Path = options.run
    if not (folder / METRICS).exists() and (runs := runs_in(folder)):
        say(f"The index is {write_index(folder, runs)}")
        return 0
    if not (folder / METRICS).exists() and folder.is_dir():
        raise MissingFileError(
            f"{folder} is neither the folder of a run nor a folder of runs: there is no {METRICS} in it"
        )
    checked = check_sums(folder)
    say(f"The report is {write_report(folder)}")
    if not checked:
        say(f"note: {folder}: {UNCHECKED}", sys.stderr)
    return 0
