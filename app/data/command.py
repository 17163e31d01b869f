"""`python -m app data`: what data is there, from where and whether it is whole; with `fetch`, get the rest."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

from app.data import cache
from app.data.fetch import fetch
from app.data.files import FILES, File
from app.data.mnist import SOURCES, load, to_stderr, without_tilde
from app.data.sample import SAMPLE, home, write_sample
from app.data.sources import parse_sources
from app.errors import DataError
from app.files import read_file
from app.printing import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("show", "fetch", "make-sample"),
        default="show",
        help="show what is there and verify it (the default); fetch what is missing;"
        " make the committed sample again from the full set",
    )
    parser.add_argument("--folder", type=Path, help="the cache (the checkout's data/ by default)")
    parser.add_argument(
        "--source",
        action="append",
        dest="sources",
        metavar="SOURCE",
        help="fetch from here instead: https://HOST/FOLDER/ or npm:NAME@VERSION; may be repeated",
    )


def run(arguments: argparse.Namespace) -> int:
    folder = without_tilde(arguments.folder) if arguments.folder else cache.default_folder()
    if arguments.action == "make-sample":
        return _make_sample(folder)
    if arguments.action == "fetch":
        sources, _ = parse_sources(arguments.sources or SOURCES)
        fetch(FILES, folder, sources, to_stderr)
        return 0 if _show(folder) else 1
    _show(folder)
    return 0


def _show(folder: Path) -> bool:
    """Print what is there; tells whether the full set is, whole."""
    say(f"The full set, in {folder}")
    states = [_state(file, folder) for file in FILES]
    for file, (_, words) in zip(FILES, states, strict=True):
        say(f"  {file.name:<23} {words}")
    print(f"The sample, in {home()}")
    print(f"  {SAMPLE.name:<23} {_state(SAMPLE, home())[1]}")
    whole = all(good for good, _ in states)
    if not whole:
        print("`python -m app data fetch` fetches what is missing. A damaged file has to be removed first.")
    return whole


def _state(file: File, folder: Path) -> tuple[bool, str]:
    if not cache.holds(file, folder):
        return False, "not there"
    try:
        cache.read(file, folder)
    except DataError as error:
        return False, f"damaged: {error}"
    return True, f"{file.size:>10,} bytes, verified"


def _make_sample(folder: Path) -> int:
    if not cache.in_checkout():
        raise DataError("the sample belongs to the project's repository, and can be made again in a checkout of it")
    full = load("auto", sources=[text for text in SOURCES if text != "sample"], folder=folder)
    path = cache.CHECKOUT / SAMPLE.name
    write_sample(full, path)
    content = read_file(path)
    made = File(path.name, len(content), hashlib.sha256(content).hexdigest())
    print(f"{path}: {made.size:,} bytes, SHA-256 {made.sha256}")
    if made != SAMPLE:
        print("app/data/sample.py knows it by other bytes, and refuses it until they are changed there.")
    return 0
