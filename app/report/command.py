"""`opsmith report`: write the report of a run from its folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.printing import say
from app.report.report import write_report
from app.run.events import NO_END
from app.run.record import read_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the folder of a run, such as runs/NAME")


def run(options: argparse.Namespace) -> int:
    """Write the report and print its path."""
    folder: Path = options.run
    say(f"The report is {write_report(folder)}")
    if not all(run.ended for run in read_runs(folder)):
        say(f"note: {folder}: {NO_END}", sys.stderr)
    return 0
