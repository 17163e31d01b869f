"""`python -m app demo`: serve the page for the networks of a run."""

from __future__ import annotations

import argparse
import errno
from pathlib import Path

from app.errors import AppError, MissingFileError
from app.experiment.api import train
from app.printing import say
from app.run.config import CONFIGS, load_config
from app.run.folder import CONFIG, UNCHECKED, WEIGHTS
from app.run.trust import add_custom_op
from app.use.demo.reading import Reader, advice
from app.use.demo.server import Server
from app.use.trained import TrainedRun, open_run
from app.vision.digits import SIZE

PORT = 28028
RUNS = Path("runs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command line may say."""
    parser.add_argument("run", nargs="?", help=f"a run's folder (the newest in {RUNS}/; where there is none, a run)")
    parser.add_argument("--port", type=_port, default=PORT, help="where to listen; 0 for any free port (%(default)s)")
    add_custom_op(parser)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:6]) < 65_536):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to 65535, found {text!r}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    folder = Path(options.run) if options.run else _newest() or _trained()
    opened = open_run(folder, (SIZE, SIZE), options.custom_op)
    with _listening(Reader(opened), options.port) as server:
        say(_introduction(opened, server.address))
        try:
            server.serve_forever()
        except KeyboardInterrupt:  # the one way to end it
            print("\nEnded.")
    return 0


def _newest() -> Path | None:
    """The run that ended last."""
    kept = [file for file in RUNS.glob(f"*/{WEIGHTS}") if (file.parent / CONFIG).is_file()]
    return max(kept, key=lambda file: file.stat().st_mtime).parent if kept else None


def _trained() -> Path:
    """A run made for the purpose."""
    best = CONFIGS / "best.yaml"
    if not best.is_file():
        raise MissingFileError(f"there is no run in {RUNS}/ yet; train one first, or name a run's folder")
    print(f"There is no run in {RUNS}/ yet: training by configs/best.yaml first, which takes a minute or so.\n")
    train(load_config(best), "best")
    folder = _newest()
    if folder is None:
        raise MissingFileError(f"the run left no weights in {RUNS}/")
    print()
    return folder


def _listening(reader: Reader, port: int) -> Server:
    try:
        return Server(reader, port)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is taken, perhaps by another demo" if error.errno == errno.EADDRINUSE else "is not for you to take"
        raise AppError(f"port {port} {why}; choose another with --port N, or any free one with --port 0") from error


def _introduction(opened: TrainedRun, address: str) -> str:
    """What is shown, and where."""
    told = [
        n.operator + (f" ({100 * n.accuracy:.2f} % of the test digits)" if n.accuracy is not None else "")
        for n in opened.networks
    ]
    lines = [f"{opened.path}: {' and '.join(told)}; engine {opened.config.engine}", advice(opened.networks)]
    lines += [] if opened.checked else [f"note: {UNCHECKED}"]
    return "\n".join([*filter(None, lines), f"Draw a digit at {address}  (for this machine alone; Ctrl-C ends it)"])
