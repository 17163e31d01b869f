"""`python -m app report`: make the report of a run again, from the run's folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.reporting.report import write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command line may say."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the folder of a run")


def run(options: argparse.Namespace) -> int:
    """Write the report, and say where it is."""
    print(f"The report is {write_report(options.run)}")
    return 0
