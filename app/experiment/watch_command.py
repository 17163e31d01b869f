"""`opsmith watch my_ops.py`: on every save, check the operators of a file, train briefly with them, and print a line.

Each version is examined in a fork of this process, so that no state of an earlier one remains, and imports are quick.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from app.errors import AppError, ConfigError
from app.printing import say
from app.run.options import CONFIGS, add_overrides
from app.signals import die_with_parent, kill_group

CHECKS = ("gradient", "untouched", "repeatable")
"""The checks that training relies on. `check` runs all checks."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    parser.add_argument("operators", metavar="WHAT", help="my_ops.py (all operators in it) or my_ops.py:name")
    parser.add_argument("--config", default=str(CONFIGS / "quick.yaml"), help="the configuration (%(default)s)")
    add_overrides(parser)


def run(options: argparse.Namespace) -> int:
    """Watch until Ctrl-C."""
    from app.checking import checks, findings  # noqa: F401 - imported before forking, as is the training loop
    from app.checking.processes import ended
    from app.data import load
    from app.run import run  # noqa: F401
    from app.run.config import load_config

    what = options.operators
    file = Path(what if what.endswith(".py") else what.rpartition(":")[0])
    if not file.is_file():
        raise ConfigError(f"there is no file {what} to watch")
    data = load_config(options.config, options.overrides).data
    load(data.source, data.sources, data.folder)  # an error of the data ends the command
    say(f"Watching {file}. Save it to check it and train with it; Ctrl-C stops.")
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    process, last_stamps = None, dict[Path, int]()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            while True:
                stamps = _stamps(file)
                time.sleep(0.05)
                if process is not None and process.exitcode:  # an operator ended it
                    code, process = process.exitcode, None
                    say(f"{time.strftime('%H:%M:%S')}  {what}  {ended(-code if code < 0 else code << 8)}")
                if (
                    stamps != last_stamps and file in stamps and stamps == _stamps(file)
                ):  # presumably written completely
                    _stop(process)
                    arguments = (os.getpid(), file, options, Path(scratch, "figures.json"), time.monotonic())
                    process = context.Process(target=_examine, args=arguments)  # type: ignore[attr-defined]
                    process.start()
                    last_stamps = stamps
        except KeyboardInterrupt:  # the only way to end it
            print("\nStopped.")
        finally:
            _stop(process)
    return 0


def _stamps(file: Path) -> dict[Path, int]:
    """Return the times of a file and of those beside it, which it may import. Many editors empty a file to write it."""
    states = {path: path.stat() for path in file.parent.glob("*.py") if path.exists()}
    return {path: state.st_mtime_ns for path, state in states.items() if state.st_size}


def _stop(process: Any) -> None:
    if process is not None:
        if hasattr(os, "killpg"):
            kill_group(process.pid)
        process.kill()
        process.join()


def _examine(parent: int, file: Path, options: argparse.Namespace, figures: Path, saved: float) -> None:
    """In the process of a version: print a line for each operator."""
    getattr(os, "setsid", int)()  # with the processes that operators start; Ctrl-C is for the watcher
    die_with_parent(parent)
    from app.checking.findings import check
    from app.checking.operators import find

    last, name = json.loads(figures.read_text()) if figures.exists() else {}, options.operators
    try:
        for one in find(options.operators):
            name = one.name
            line = "; ".join(f"{v.check} FAILED: {v.words}" for v in check(f"{file}:{name}", only=CHECKS).failed)
            if not line:
                line, last[name] = _trained(f"{file}:{name}", options, *last.get(name, (None, None)))
            say(f"{time.strftime('%H:%M:%S')}  {name}  {line}  [{time.monotonic() - saved:.1f} s]")
    except AppError as error:
        say(f"{time.strftime('%H:%M:%S')}  {name}  {error}  [{time.monotonic() - saved:.1f} s]")
    figures.write_text(json.dumps(last))


def _trained(operator: str, options: argparse.Namespace, last_accuracy: Any, last_ratio: Any) -> tuple[str, Any]:
    """Train with an operator; return its accuracy and speed, beside those of its last version and of the baseline."""
    from app.run.comparison import time_ratio
    from app.run.config import load_config
    from app.run.console import Console
    from app.run.record import read_run
    from app.run.run import train

    with tempfile.TemporaryDirectory() as folder:
        quick = [f"model.activation='{operator}'", f"output={folder}", "report=false", "costs=false", "check=false"]
        config = load_config(options.config, [*options.overrides, *quick])
        train(config, Console(False, None, brief=True))
        run = read_run(Path(folder))
    accuracy, speed, ratio = run.accuracy(operator) or 0.0, f"epoch {run.seconds(operator):.3f} s", None
    beside = [] if last_accuracy is None else [f"{accuracy - last_accuracy:+.4f} from the last version"]
    if baseline := config.baseline:
        beside.append(f"{accuracy - (run.accuracy(baseline) or 0.0):+.4f} from {baseline}")
        ratio = time_ratio([(run.timed(operator), run.timed(baseline))]).mean
        speed += f", {ratio:.2f} times {baseline}'s" + (f" (was {last_ratio:.2f})" if last_ratio else "")
    listed = f" ({', '.join(beside)})" if beside else ""
    return f"gradient ok  accuracy {accuracy:.4f}{listed}  {speed}", (accuracy, ratio)
