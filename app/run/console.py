"""Console output of a run: text with live lines on a terminal, only the result (`Quiet`), or JSON."""

from __future__ import annotations

import os
import stat
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

import numpy as np

from app.printing import alarm, escaped, figure, message, wrapped
from app.run.callbacks import Callback, Contestant, Position
from app.run.events import Epoch, Event, json_line, line
from app.run.live import LiveLines, Progress, can_draw, columns_of

_SECONDS_BETWEEN_DRAWINGS = 0.1
COMPILING = "Compiling {} (cached in .cache for later runs)"
_PATIENCE = 1.5
"""Seconds of silence before the console prints what it is waiting for."""


class Console(Callback):
    """Prints lines to standard output. On a terminal, a live line per operator replaces the periodic reports."""

    def __init__(self, live: bool = True) -> None:
        self._live = LiveLines() if live and _can_show_live_lines() else None
        self._progress: dict[str, Progress] = {}
        self._width, self._epochs, self._drawn_at = 0, 0, 0.0
        self._every_epoch = True
        self._tested_on = "test"
        self._tested: set[str] = set()
        self._wait: _Wait | None = None
        self.said_at, self._pause = time.monotonic(), _PATIENCE

    def say(self, text: str) -> None:
        """Print lines above the live ones, wrapped to the width of the terminal."""
        self.said_at, self._pause = time.monotonic(), _PATIENCE
        print(wrapped(escaped(text), self.columns), flush=True)

    def warn(self, text: str) -> None:
        """Print a warning. The run continues."""
        self.say(text)

    def alarm(self, text: str) -> None:
        """Print a prominent warning."""
        alarm(text, sys.stdout)

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Print what the block does, and then its duration, if nothing else is printed for a second or two."""
        wait = _Wait(self, what)
        try:
            yield
        finally:
            wait.end()

    def waiting(self, text: str) -> None:
        """Show the state of a long wait: as a live line on a terminal, otherwise after ever longer silences."""
        now = time.monotonic()
        if self._live is not None:
            if now >= self._drawn_at + 1:
                self._live.begin()
                self._live.draw([text])
                self._drawn_at = now
        elif now >= self.said_at + self._pause:
            pause = self._pause
            self.say(text)
            self._pause = 2 * pause

    def start_training(
        self, operators: Sequence[str], epochs: int, batch_size: int, title: str = "", tested_on: str = "test"
    ) -> None:
        """Training of these operators begins. With a title it is one seed of several, and epochs are not printed."""
        self._width, self._epochs = max(map(len, operators)), epochs
        self._progress = {operator: Progress(epochs, batch_size) for operator in operators}
        self._every_epoch = not title
        self._tested_on = tested_on
        if title:
            self.say(title)

    def end_seed(self, entered: Sequence[Contestant], tested_on: str = "test") -> None:
        """All operators have been trained with one of several seeds."""
        width = max(len(contestant.operator) for contestant in entered)
        for contestant in entered:
            seconds = statistics.median(epoch.seconds for epoch in contestant.epochs)
            accuracy = f"{tested_on} accuracy {contestant.epochs[-1].test_accuracy:.4f}"
            self.say(f"  {contestant.operator:{width}}  {accuracy}  {seconds:.3f} s per epoch")

    def record(self, event: Event) -> None:
        """Print an event that was written to the metrics."""

    def conclude(self, text: str, outcome: Mapping[str, Any], folder: str) -> None:
        """Print the outcome, given as text and as data, and the folder of the run."""
        self.say(f"\n{text}\n\nThe run is in {folder}/")

    @property
    def columns(self) -> int | None:
        """The width of the terminal, or None."""
        return columns_of(sys.stdout)

    # As a callback

    def begin(self, position: Position) -> None:
        self._progress[position.contestant.operator].begin(position)
        if self._live is not None:
            self._live.begin()
        self._draw(position)

    def report(self, position: Position, loss: float, accuracy: float) -> None:
        if self._every_epoch and (self._live is None or not sys.stdout.isatty()):
            of = position.iterations
            where = f"iteration {position.done - 1:>{len(str(of))}}/{of}"
            self.say(f"{self._head(position)}  {where}  loss {figure(loss)}  accuracy {accuracy:.4f}")

    def piece(self, position: Position, losses: np.ndarray, accuracies: np.ndarray) -> None:
        self._progress[position.contestant.operator].piece(position, losses, accuracies)
        late = time.monotonic() >= self._drawn_at + _SECONDS_BETWEEN_DRAWINGS
        if late or position.done == position.iterations:
            self._draw(position)

    def test(self, position: Position) -> None:
        operator = position.contestant.operator
        if operator not in self._tested:
            self._tested.add(operator)
            self._wait = _Wait(self, f"Compiling the test of {operator} (cached in .cache for later runs)")

    def epoch(self, position: Position, result: Epoch) -> None:
        self._end_wait()
        if self._every_epoch:
            loss = float("nan") if result.test_loss is None else result.test_loss
            of = self._tested_on
            figures = f"{of} accuracy {result.test_accuracy:.4f}  {of} loss {figure(loss)}  {result.seconds:.3f} s"
            self.say(f"{self._head(position)}  {figures}")

    def end(self) -> None:
        self._end_wait()
        if self._live is not None:
            self._live.end()

    def _end_wait(self) -> None:
        if self._wait is not None:
            self._wait.end()
            self._wait = None

    def _draw(self, position: Position) -> None:
        """Show the progress of the operators, or of this one if there is no room for all."""
        if self._live is not None:
            columns, rows = self._live.room()
            shown = self._progress if len(self._progress) <= rows else [position.contestant.operator]
            self._live.draw([self._line(name, columns) for name in shown])
            self._drawn_at = time.monotonic()

    def _line(self, name: str, columns: int) -> str:
        return self._progress[name].line(f"{_plain(name):{self._width}}", columns)

    def _head(self, position: Position) -> str:
        return f"{position.contestant.operator:{self._width}}  epoch {position.epoch + 1}/{self._epochs}"


class _Wait:
    """Prints what is being waited for once nothing was printed for a while, and its duration at the end."""

    def __init__(self, console: Console, what: str):
        self._console, self._what = console, what
        self._said, self._began = threading.Event(), time.monotonic()
        silent = self._began - console.said_at
        self._timer = threading.Timer(max(_PATIENCE - silent, _PATIENCE / 8), self._say)
        self._timer.daemon = True
        self._timer.start()

    def _say(self) -> None:
        self._said.set()
        with suppress(OSError, ValueError):  # the next line printed in the main thread raises the same error
            self._console.say(f"{self._what} ...")

    def end(self) -> None:
        self._timer.cancel()
        self._timer.join()
        if self._said.is_set():
            self._console.say(f"  {time.monotonic() - self._began:.1f} s")


class Quiet(Console):
    """Prints only the outcome of a run and warnings."""

    def __init__(self) -> None:
        super().__init__(live=False)
        self._ending = False

    def say(self, text: str) -> None:
        if self._ending:
            super().say(text)

    def warn(self, text: str) -> None:
        print(message(text), file=sys.stderr)

    def alarm(self, text: str) -> None:
        alarm(text, sys.stderr)

    def conclude(self, text: str, outcome: Mapping[str, Any], folder: str) -> None:
        self._ending = True
        self.say(f"{text}\n\nThe run is in {folder}/")


class Silent(Quiet):
    """Prints only warnings, for calls from Python, which return the result."""

    def conclude(self, text: str, outcome: Mapping[str, Any], folder: str) -> None:
        """Print nothing: the caller has the result."""


class Json(Quiet):
    """Prints a JSON object per line: each line of metrics.jsonl, then one for the outcome."""

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self._out = out

    def record(self, event: Event) -> None:
        print(line(event), file=self._out, flush=True)

    def conclude(self, text: str, outcome: Mapping[str, Any], folder: str) -> None:
        print(json_line({**outcome, "folder": folder}), file=self._out, flush=True)


@contextmanager
def console(quiet: bool = False, as_json: bool = False) -> Iterator[Console]:
    """Return the console for the command line's options. With JSON, all other output goes to standard error."""
    if not as_json:
        yield Quiet() if quiet else Console()
        return
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        yield Json(out)


def _can_show_live_lines() -> bool:
    """Return whether standard error supports live lines and standard output does not share its screen through a
    pipe."""
    if not can_draw(sys.stderr):
        return False
    try:
        return not stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # not a file of the operating system
        return True


def _plain(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)
