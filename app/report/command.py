"""`python -m app report`: make the report of a run again, from the run's folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.printing import say
from app.report.report import write_report
from app.run.folder import UNCHECKED, check_sums


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command line may say."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the folder of a run")


def run(options: argparse.Namespace) -> int:
    """Write the report, and say where it is."""
    checked = check_sums(options.run)
    say(f"The report is {write_report(options.run)}")
    if not checked:
        say(f"note: {options.run}: {UNCHECKED}", sys.stderr)
    return 0
