"""What a run says: lines for people, with live ones on a terminal; the end alone; or JSON for programs."""

from __future__ import annotations

import os
import stat
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

import numpy as np

from app.printing import escaped
from app.training.run_folder import event_line
from app.training.telling.live import LiveLines, can_draw, columns_of
from app.training.telling.progress import Progress
from app.training.watcher import Epoch, Place, Watcher

_SECONDS_BETWEEN_DRAWINGS = 0.1


class Console(Watcher):
    """Lines on standard output. On a terminal a live line for each operator takes the place of the reports."""

    def __init__(self) -> None:
        self._live = LiveLines() if _can_show_live_lines() else None
        self._progress: dict[str, Progress] = {}
        self._width, self._epochs, self._drawn_at = 0, 0, 0.0

    def introduce(self, text: str, operators: Sequence[str], epochs: int, batch_size: int) -> None:
        """Say what will be trained, and know it from here on."""
        self._width, self._epochs = max(map(len, operators)), epochs
        self._progress = {operator: Progress(epochs, batch_size) for operator in operators}
        self.say(text)

    def say(self, text: str) -> None:
        """Lines of their own, above the live ones; broken between words where a terminal is narrow."""
        columns = self.columns
        lines = escaped(text).split("\n")
        print("\n".join(lines if columns is None else [part for line in lines for part in _broken(line, columns)]))
        sys.stdout.flush()

    def warn(self, text: str) -> None:
        """Something went wrong that does not end the run."""
        self.say(text)

    def record(self, event: Mapping[str, Any]) -> None:
        """An event was written to the metrics."""

    def conclude(self, text: str, outcome: Mapping[str, Any], folder: str) -> None:
        """Say how the run ended, as words and as data, and where it is kept."""
        self.say(f"\n{text}\n\nThe run is in {folder}/")

    @property
    def columns(self) -> int | None:
        """How wide the terminal is, if it is one."""
        return columns_of(sys.stdout)

    # As a watcher

    def begin(self, place: Place) -> None:
        self._progress[place.contestant.operator].begin(place)
        if self._live is not None:
            self._live.begin()
            self._draw(place)

    def report(self, place: Place, loss: float, accuracy: float) -> None:
        if self._live is None or not sys.stdout.isatty():
            of = place.iterations
            where = f"iteration {place.done - 1:>{len(str(of))}}/{of}"
            self.say(f"{self._head(place)}  {where}  loss {loss:.4f}  accuracy {accuracy:.4f}")

    def piece(self, place: Place, losses: np.ndarray, accuracies: np.ndarray) -> None:
        if self._live is not None:
            self._progress[place.contestant.operator].piece(place, losses, accuracies)
            if time.monotonic() >= self._drawn_at + _SECONDS_BETWEEN_DRAWINGS or place.done == place.iterations:
                self._draw(place)

    def epoch(self, place: Place, result: Epoch) -> None:
        figures = f"test accuracy {result.accuracy:.4f}  test loss {result.loss:.4f}  {result.seconds:.3f} s"
        self.say(f"{self._head(place)}  {figures}")

    def end(self) -> None:
        if self._live is not None:
            self._live.end()

    def _draw(self, place: Place) -> None:
        assert self._live is not None
        columns, rows = self._live.room()
        shown = self._progress if len(self._progress) <= rows else [place.contestant.operator]
        self._live.draw([self._progress[name].line(f"{_plain(name):{self._width}}", columns) for name in shown])
        self._drawn_at = time.monotonic()

    def _head(self, place: Place) -> str:
        return f"{place.contestant.operator:{self._width}}  epoch {place.epoch + 1}/{self._epochs}"


class Quiet(Console):
    """The end of a run alone, and what goes wrong."""

    def __init__(self) -> None:
        super().__init__()
        self._live = None
        self._ending = False

    def say(self, text: str) -> None:
        if self._ending:
            super().say(text)

    def warn(self, text: str) -> None:
        print(escaped(text), file=sys.stderr)

    def conclude(self, text: str, outcome: Mapping[str, Any], folder: str) -> None:
        self._ending = True
        self.say(f"{text}\n\nThe run is in {folder}/")


class Json(Quiet):
    """An object a line: those of metrics.jsonl as they are written, then one for the end of the run."""

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self._out = out

    def record(self, event: Mapping[str, Any]) -> None:
        print(event_line(event), file=self._out, flush=True)

    def conclude(self, text: str, outcome: Mapping[str, Any], folder: str) -> None:
        self.record({**outcome, "folder": folder})


@contextmanager
def console(quiet: bool = False, as_json: bool = False) -> Iterator[Console]:
    """The console that the command line asks for. Beside JSON, whatever else is printed goes to standard error."""
    if not as_json:
        yield Quiet() if quiet else Console()
        return
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        yield Json(out)


def _can_show_live_lines() -> bool:
    """Whether standard error can, and standard output does not come to the same screen by a way of its own."""
    if not can_draw(sys.stderr):
        return False
    try:
        return not stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # what is no file of the system's
        return True


def _broken(line: str, columns: int) -> list[str]:
    """A line as those that a terminal has room for; those after the first are indented."""
    if len(line) <= columns:
        return [line]
    return textwrap.wrap(line, columns, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _plain(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)
