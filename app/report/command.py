"""`opsmith report`: write the report of a run from its folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.errors import MissingFileError
from app.printing import say
from app.report.report import write_report
from app.run.events import METRICS, NO_END, End, read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the folder of a run, such as runs/NAME")


def run(options: argparse.Namespace) -> int:
    """Write the report and print its path."""
    folder: Path = options.run
    if not (folder / METRICS).exists() and folder.is_dir():
        raise MissingFileError(f"{folder} is not the folder of a run: there is no {METRICS} in it")
    say(f"The report is {write_report(folder)}")
    if not any(isinstance(event, End) for event in read(folder)):
        say(f"note: {folder}: {NO_END}", sys.stderr)
    return 0
