"""`opsmith watch my_ops.py`: on every save, check the operators of a file, train briefly with them, and print the
results.

Each version is examined in a fork of this process, which has imported everything but the file: no state of an earlier
version remains, and imports take no time.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import app
from app.errors import AppError, ConfigError
from app.printing import PLAIN, RED, escaped, in_colour
from app.reading import PACKAGE
from app.run.options import CONFIGS, add_overrides
from app.signals import die_with_parent, kill_group

if TYPE_CHECKING:
    from app.data import Dataset
    from app.run.config import Config

CHECKS = ("gradient", "untouched", "repeatable")
"""The checks that training relies on. `check` runs all checks."""
_IMPORTED_ONCE = (
    "numba",
    f"{PACKAGE}.checking.checks",
    f"{PACKAGE}.checking.examples",
    f"{PACKAGE}.engine.compiled.engine",
    f"{PACKAGE}.run.training",
)
"""The modules to import before forking."""
_PACKAGE = os.path.join(os.path.dirname(app.__file__), "")
_PAUSE = 0.05
"""Seconds between two polls of the files."""


@dataclass(frozen=True)
class Look:
    """The result of one version of an operator."""

    operator: str
    wrong: str = ""
    """The failed check or the error; if set, nothing was trained."""
    accuracy: float = 0.0
    seconds: float = 0.0
    """The median time of an epoch."""
    baseline: str = ""
    baseline_accuracy: float = 0.0
    ratio: float = 1.0
    """The ratio of the epoch time to that of the same epoch of the baseline."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    parser.add_argument("operators", metavar="WHAT", help="my_ops.py (all operators in it) or my_ops.py:name")
    parser.add_argument("--config", default=str(CONFIGS / "quick.yaml"), help="the configuration (%(default)s)")
    add_overrides(parser)


def run(options: argparse.Namespace) -> int:
    """Watch until Ctrl-C."""
    import msgspec

    from app.data import load
    from app.run.config import load_config

    file, name = _parted(options.operators)
    if not file.is_file():
        raise ConfigError(f"there is no file {file} to watch")
    config = msgspec.structs.replace(load_config(options.config, options.overrides), report=False)
    data = config.data
    watcher = Watcher(file, name, config, load(data.source, data.sources, data.folder))
    print(f"Watching {escaped(str(file))}. Save it to check it and train with it; Ctrl-C stops.", flush=True)
    try:
        watcher.watch()
    except KeyboardInterrupt:  # the only way to end it
        print("\nStopped.")
    finally:
        watcher.stop()
    return 0


def _parted(word: str) -> tuple[Path, str]:
    home, colon, name = word.rpartition(":")
    return (Path(home), name) if colon and home.endswith(".py") else (Path(word), "")


class Watcher:
    """Watches a file and the neighbouring files that it imports, and examines each version."""

    def __init__(self, file: Path, name: str, config: Config, dataset: Dataset):
        for module in _IMPORTED_ONCE:
            importlib.import_module(module)
        self._file, self._name, self._config, self._dataset = file, name, config, dataset
        self._files = {file.resolve()}
        self._seen: Mapping[Path, int] = {}
        self._saved = 0.0
        self._process: Any = None
        self._answers: Connection | None = None
        self._last: dict[str, Look] = {}

    def watch(self) -> None:
        """Poll until interrupted."""
        while True:
            self.look()

    def look(self) -> None:
        """Start examining a new version, or print the results of the current one."""
        stamps = _stamps(self._files)
        if stamps != self._seen and self._file.resolve() in stamps:
            time.sleep(_PAUSE)
            if stamps == _stamps(self._files):  # presumably written completely
                self._begin(stamps)
            return
        if self._answers is None or not self._answers.poll(_PAUSE):
            if self._answers is None:
                time.sleep(_PAUSE)
            return
        try:
            answer = self._answers.recv()
        except EOFError:
            self._process.join()
            if self._process.exitcode:
                self._say(Look(str(self._file), f"the process ended with status {self._process.exitcode}"))
            self.stop()
            return
        if isinstance(answer, Look):
            self._say(answer)
            if not answer.wrong:
                self._last[answer.operator] = answer
        else:
            self._files = {self._file.resolve(), *answer}
            self._seen = {**_stamps(self._files), **self._seen}

    def stop(self) -> None:
        """End the process that examines a version, if any."""
        if self._process is not None:
            if hasattr(os, "killpg"):
                kill_group(self._process.pid)
            self._process.kill()
            self._process.join()
        self._process = self._answers = None

    def _begin(self, stamps: Mapping[Path, int]) -> None:
        self.stop()
        self._seen, self._saved = stamps, time.monotonic()
        context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
        self._answers, theirs = context.Pipe(duplex=False)
        arguments = (os.getpid(), str(self._file), self._name, self._config, self._dataset, theirs)
        self._process = context.Process(target=_examine, args=arguments, daemon=True)  # type: ignore[attr-defined]
        sys.stdout.flush()
        self._process.start()
        theirs.close()

    def _say(self, look: Look) -> None:
        line = escaped(line_of(look, self._last.get(look.operator)))
        line = f"{RED}{line}{PLAIN}" if look.wrong and in_colour(sys.stdout) else line
        print(f"{time.strftime('%H:%M:%S')}  {line}  [{time.monotonic() - self._saved:.1f} s]", flush=True)


def _stamps(files: set[Path]) -> dict[Path, int]:
    """Return the modification time of each file that exists and has content: many editors empty a file to write it."""
    found = {}
    for file in sorted(files):
        with contextlib.suppress(OSError):
            status = file.stat()
            if status.st_size:
                found[file] = status.st_mtime_ns
    return found


def line_of(look: Look, last: Look | None) -> str:
    """Format a line about a version, compared with the last trained version and the baseline."""
    if look.wrong:
        return f"{look.operator}  {look.wrong}"
    accuracy, speed = [], f"epoch {look.seconds:.3f} s"
    if last is not None:
        accuracy.append(f"{look.accuracy - last.accuracy:+.4f} from the last version")
    if look.baseline:
        accuracy.append(f"{look.accuracy - look.baseline_accuracy:+.4f} from {look.baseline}")
        was = f" (was {last.ratio:.2f})" if last is not None else ""
        speed += f", {look.ratio:.2f} times {look.baseline}'s{was}"
    beside = f" ({', '.join(accuracy)})" if accuracy else ""
    return f"{look.operator}  gradient ok  accuracy {look.accuracy:.4f}{beside}  {speed}"


# In the child process of a version


def _examine(parent: int, file: str, name: str, config: Config, dataset: Dataset, answers: Connection) -> None:
    """Send a Look for each operator, and the imported files."""
    if hasattr(os, "setsid"):
        os.setsid()  # with the processes that operators start; Ctrl-C is for the watcher
    die_with_parent(parent)
    from app.checking.finding import find

    try:
        found = find(f"{file}:{name}" if name else file)
    except AppError as error:
        answers.send(Look(file, str(error)))
        return
    finally:
        answers.send(_imported(Path(file).resolve().parent))
    for one in found:
        try:
            answers.send(_look(f"{file}:{one.name}", one, config, dataset))
        except AppError as error:
            answers.send(Look(one.name, str(error)))


def _imported(folder: Path) -> list[Path]:
    """Return the imported files in or below a folder, except those of this package or a virtual environment there."""
    known = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    files = [Path(file) for file in known if file is not None and not file.startswith(_PACKAGE)]
    inside = [file for file in files if file.is_relative_to(folder)]
    return [file for file in inside if "site-packages" not in file.relative_to(folder).parts]


def _look(reference: str, one: Any, config: Config, dataset: Dataset) -> Look:
    from app.checking.checks import examine
    from app.checking.examples import inputs_for
    from app.run.comparison import time_ratio
    from app.run.network import find_all
    from app.run.training import train_in_turns

    wrong = [f"{v.check} FAILED: {v.words}" for v in examine(inputs_for(one), CHECKS) if v.failed]
    if wrong:
        return Look(one.name, "; ".join(wrong))
    names = [reference, *([config.baseline] if config.baseline else [])]
    activations = find_all(names, config.model)
    epochs = train_in_turns(config, activations, dataset)
    mine, theirs = epochs[0], epochs[-1]
    return Look(
        one.name,
        accuracy=mine[-1].test_accuracy,
        seconds=statistics.median(epoch.seconds for epoch in mine),
        baseline=config.baseline or "",
        baseline_accuracy=theirs[-1].test_accuracy,
        ratio=time_ratio([(mine, theirs)]).mean,
    )
