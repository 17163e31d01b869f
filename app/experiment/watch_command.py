"""`python -m app watch my_ops.py`: on every save, check the operators of a file, train with them a little, and say so.

Each version is looked at in a process of its own, forked from this one, which has imported everything but the file: so
nothing of an earlier version is left, and no time is spent on imports.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import signal
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.errors import AppError, ConfigError
from app.printing import PLAIN, RED, escaped, in_colour
from app.run.options import CONFIGS, add_overrides

if TYPE_CHECKING:
    from app.data import Dataset
    from app.run.config import Config

CHECKS = ("gradient", "untouched", "repeatable")
"""What is checked: the promises that training relies on. `check` holds an operator to all of them."""
_IMPORTED_ONCE = (
    "numba",
    "app.checking.checks",
    "app.checking.examples",
    "app.engine.compiled.engine",
    "app.run.training",
)
"""What the processes that examine a version find imported already."""
_PAUSE = 0.05
"""Seconds between two looks at the files."""


@dataclass(frozen=True)
class Look:
    """What one version of an operator comes to."""

    operator: str
    wrong: str = ""
    """What a check found, or an error; then nothing was trained."""
    accuracy: float = 0.0
    seconds: float = 0.0
    """The median time of an epoch."""
    baseline: str = ""
    baseline_accuracy: float = 0.0
    ratio: float = 1.0
    """The time of an epoch over that of the same epoch of the baseline."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command line may say."""
    parser.add_argument("operators", metavar="WHAT", help="my_ops.py (all operators in it) or my_ops.py:name")
    parser.add_argument("--config", default=str(CONFIGS / "quick.yaml"), help="the YAML file to train by (%(default)s)")
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
    print(f"Watching {escaped(str(file))}; save it to see what it does. Ctrl-C ends it.", flush=True)
    try:
        watcher.watch()
    except KeyboardInterrupt:  # the one way to end it
        print("\nEnded.")
    finally:
        watcher.stop()
    return 0


def _parted(word: str) -> tuple[Path, str]:
    home, colon, name = word.rpartition(":")
    return (Path(home), name) if colon and home.endswith(".py") else (Path(word), "")


class Watcher:
    """Looks at a file, and at those beside it that it imports, and has each version of them examined."""

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
        """Look again and again."""
        while True:
            self.look()

    def look(self) -> None:
        """Begin with a version that is new; say what has come of the one that is examined."""
        stamps = _stamps(self._files)
        if stamps != self._seen and self._file.is_file():
            time.sleep(_PAUSE)
            if stamps == _stamps(self._files):  # written to its end, as far as one can see
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
        """End the process that examines a version, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._answers = None

    def _begin(self, stamps: Mapping[Path, int]) -> None:
        self.stop()
        self._seen, self._saved = stamps, time.monotonic()
        context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
        self._answers, theirs = context.Pipe(duplex=False)
        arguments = (str(self._file), self._name, self._config, self._dataset, theirs)
        self._process = context.Process(target=_examine, args=arguments, daemon=True)  # type: ignore[attr-defined]
        sys.stdout.flush()
        self._process.start()
        theirs.close()

    def _say(self, look: Look) -> None:
        line = escaped(told(look, self._last.get(look.operator)))
        line = f"{RED}{line}{PLAIN}" if look.wrong and in_colour(sys.stdout) else line
        print(f"{time.strftime('%H:%M:%S')}  {line}  [{time.monotonic() - self._saved:.1f} s]", flush=True)


def _stamps(files: set[Path]) -> dict[Path, int]:
    """For each file that is there the time of its last change."""
    found = {}
    for file in sorted(files):
        try:
            found[file] = file.stat().st_mtime_ns
        except OSError:
            continue
    return found


def told(look: Look, last: Look | None) -> str:
    """A line about a version: against the last one that was trained, and against the baseline."""
    if look.wrong:
        return f"{look.operator}  {look.wrong}"
    accuracy, speed = [], f"epoch {look.seconds:.3f} s"
    if last is not None:
        accuracy.append(f"{look.accuracy - last.accuracy:+.4f} to the last version")
    if look.baseline:
        accuracy.append(f"{look.accuracy - look.baseline_accuracy:+.4f} to {look.baseline}")
        was = f" (was {last.ratio:.2f})" if last is not None else ""
        speed += f", {look.ratio:.2f} times {look.baseline}'s{was}"
    beside = f" ({', '.join(accuracy)})" if accuracy else ""
    return f"{look.operator}  gradient ok  accuracy {look.accuracy:.4f}{beside}  {speed}"


# In the process of a version


def _examine(file: str, name: str, config: Config, dataset: Dataset, answers: Connection) -> None:
    """Send a Look for each operator, and the files that were imported."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the watcher ends this process
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
    """The files in a folder, and below it, that were imported, less those of an environment that lies there."""
    known = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    files = [Path(file) for file in known if file is not None]
    return [file for file in files if file.is_relative_to(folder) and not {"site-packages", "app"} & {*file.parts}]


def _look(reference: str, one: Any, config: Config, dataset: Dataset) -> Look:
    from app.checking.checks import examine
    from app.checking.examples import inputs_for
    from app.run.network import find_activation
    from app.run.training import train_in_turns
    from app.run.trust import Trust

    wrong = [f"{v.check} FAILED: {v.words}" for v in examine(inputs_for(one), CHECKS) if v.failed]
    if wrong:
        return Look(one.name, "; ".join(wrong))
    activations = [find_activation(reference, Trust([reference]))]
    if config.baseline:
        activations.append(find_activation(config.baseline))
    epochs = train_in_turns(config, activations, dataset)
    mine, theirs = epochs[0], epochs[-1]
    return Look(
        one.name,
        accuracy=mine[-1].test_accuracy,
        seconds=statistics.median(epoch.seconds for epoch in mine),
        baseline=config.baseline or "",
        baseline_accuracy=theirs[-1].test_accuracy,
        ratio=statistics.median(a.seconds / b.seconds for a, b in zip(mine, theirs, strict=True)),
    )
