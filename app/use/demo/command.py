"""`opsmith demo`: serve the page for the networks of a run."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from app.errors import AppError
from app.experiment.results import Result
from app.printing import say
from app.run.events import NO_END
from app.run.options import add_custom_op
from app.run.weights import WEIGHTS
from app.use.demo.classifier import FEW, SHIPPED, Classifier, accuracies_of, advice, name_of
from app.use.demo.server import Server
from app.use.digits import SIZE

PORT = 28028
RUNS = Path("runs")
LOOKED_AT = 50
"""The number of latest runs among which the best one is selected."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        help=f"a run's folder (by default the best in {RUNS}/, or the network that comes with opsmith)",
    )
    parser.add_argument(
        "--port", type=_port, default=PORT, help="the port to listen on; 0 for any free port (%(default)s)"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    add_custom_op(parser)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 65_536):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to 65535, found {text!r}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    opened, note = _opened(options)
    with _listening(Classifier(opened), options.port) as server:
        at = f"Draw a digit at {server.address}  (only reachable from this machine; Ctrl-C stops the server)"
        say(f"{_introduction(opened, note)}\n{at}")
        try:
            if not options.no_browser and _has_display():
                webbrowser.open(server.address)
            server.serve_forever()
        except KeyboardInterrupt:  # the only way to end it
            print("\nStopped.")
    return 0


def _has_display() -> bool:
    """Return whether a browser can open a window; without a display, some browsers use the terminal."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY"))


def open_run(folder: Path, custom_ops: Sequence[str] = ()) -> Result:
    """Open the folder of a run for pictures of digits, with its networks."""
    result = Result(folder, custom_ops=custom_ops)
    for operator in result:
        _ = result[operator].network  # raises errors of the files
    if (shape := result.runs[0].image) != (SIZE, SIZE):
        raise AppError(f"{folder}: its networks take images of {' x '.join(map(str, shape))} pixels, not of 28 x 28")
    return result


def _opened(options: argparse.Namespace) -> tuple[Result, str]:
    """Open the named run, or the best one; return it with a note about the choice."""
    if options.run is not None:
        return open_run(Path(options.run), options.custom_op), ""
    note = ""
    for accuracy, folder in _best_first():
        if accuracy < FEW:
            better = (
                f"classifies only {100 * accuracy:.1f} % of the test digits correctly; to use it: opsmith demo {folder}"
            )
            note = f"note: {folder} {better}"
            break
        try:
            return open_run(folder, options.custom_op), ""
        except AppError:  # such as an operator in a file that was not named
            continue
    return open_run(SHIPPED), note


def _best_first() -> list[tuple[float, Path]]:
    """Return the latest runs with weights, best accuracy first."""
    files = [file for pattern in ("*", "*/seed-*") for file in RUNS.glob(f"{pattern}/{WEIGHTS}")]
    stored = {file.parent: file.lstat().st_mtime for file in files}
    runs = []
    for folder in sorted(stored, key=stored.__getitem__, reverse=True)[:LOOKED_AT]:
        try:
            accuracies = [accuracy for accuracy in accuracies_of(Result(folder)).values() if accuracy is not None]
        except AppError:
            continue
        if accuracies:
            runs.append((max(accuracies), folder))
    return sorted(runs, key=lambda one: -one[0])


def _listening(classifier: Classifier, port: int) -> Server:
    try:
        return Server(classifier, port)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is taken, perhaps by another demo" if error.errno == errno.EADDRINUSE else "needs more privileges"
        raise AppError(f"port {port} {why}; choose another with --port N, or any free one with --port 0") from error


def _introduction(opened: Result, note: str) -> str:
    """Return the lines printed at the start."""
    networks = [
        name + (f" ({100 * accuracy:.2f} % test accuracy)" if accuracy is not None else "")
        for name, accuracy in accuracies_of(opened).items()
    ]
    name = "The network that comes with opsmith" if opened.folder == SHIPPED else name_of(opened)
    lines = [f"{name}: {' and '.join(networks)}", advice(accuracies_of(opened).values()), note]
    lines += [] if opened.runs[0].ended else [f"note: {NO_END}"]
    return "\n".join(filter(None, lines))
