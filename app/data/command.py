"""`opsmith data`: what data is there, from where and whether it is whole; with `fetch`, get the rest."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from app.data.files import FILES, File, default_folder, fetch, read
from app.data.mnist import SOURCES, to_stderr
from app.data.sample import SAMPLE, home
from app.data.sources import parse_sources
from app.errors import DataError
from app.files import without_tilde
from app.printing import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("show", "fetch"),
        default="show",
        help="show and verify the files that are there (the default), or download those that are missing",
    )
    parser.add_argument("--folder", type=Path, help="the folder of the files (by default data/ of the checkout)")


def run(arguments: argparse.Namespace) -> int:
    folder = without_tilde(arguments.folder) if arguments.folder else default_folder()
    if arguments.action == "fetch":
        sources, _ = parse_sources(SOURCES)
        fetch(FILES, folder, sources, to_stderr)
        if lacking := _show(folder):
            raise DataError(f"{folder} still lacks {', '.join(lacking)}: what was fetched could not be kept there")
        return 0
    _show(folder)
    return 0


def _show(folder: Path) -> list[str]:
    """Print what is there; return the names of the files that are missing or damaged."""
    say(f"The full set, in {folder}")
    states = [_state(file, folder) for file in FILES]
    for file, (_, description) in zip(FILES, states, strict=True):
        say(f"  {file.name:<23} {description}")
    print(f"The sample, in {home()}")
    print(f"  {SAMPLE.name:<23} {_state(SAMPLE, home())[1]}")
    lacking = [file.name for file, (good, _) in zip(FILES, states, strict=True) if not good]
    if lacking:
        print("`opsmith data fetch` downloads missing files. Remove damaged files first.")
    return lacking


def _state(file: File, folder: Path) -> tuple[bool, str]:
    if not os.path.lexists(folder / file.name):
        return False, "missing"
    try:
        read(file, folder)
    except DataError as error:
        return False, f"damaged: {error}"
    return True, f"{file.size:>10,} bytes, verified"
