"""Lines at the bottom of a terminal that change in place, and how far an operator's network is, in such a line."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import numpy as np

from app.printing import cells, figure
from app.run.callbacks import Position

CLEAR = "\r\x1b[J"
"""Erases the lines. The cursor waits at the beginning of the first, so what else writes there begins with this."""


def can_draw(stream: TextIO) -> bool:
    """Whether a stream is a terminal that knows how to move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def columns_of(stream: TextIO) -> int | None:
    """How many characters fit into a line of a terminal; None of what is no terminal, or does not say."""
    return _size(stream)[0] if stream.isatty() else None


def _size(stream: TextIO) -> tuple[int | None, int | None]:
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return None, None
    return columns or None, rows or None


class LiveLines:
    """Between `begin` and `end`, lines at the bottom of the terminal of standard error."""

    def __init__(self) -> None:
        self._terminal = sys.stderr
        self._streams: tuple[TextIO, TextIO] | None = None
        self._lines: Sequence[str] = ()

    def begin(self) -> None:
        """From now on, what is printed by whomever goes above the lines."""
        if self._streams is None:
            self._streams = sys.stdout, sys.stderr
            above: Any = [_Above(self, stream) for stream in self._streams]
            sys.stdout, sys.stderr = above

    def end(self) -> None:
        """Erase the lines; printing is as it was."""
        if self._streams is not None:
            above = sys.stdout, sys.stderr
            sys.stdout, sys.stderr = self._streams
            self._streams = None
            self.draw([])
            for stream in above:
                if isinstance(stream, _Above):
                    stream.finish()

    def room(self) -> tuple[int, int]:
        """How many characters a line may have, and how many lines there may be."""
        columns, rows = _size(self._terminal)
        return (columns or 80) - 1, max((rows or 24) - 1, 1)

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines in the place of those before."""
        self._lines = lines
        up = f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else ""
        self._terminal.write(CLEAR + "\n".join(lines) + up + "\r")
        self._terminal.flush()

    def above(self, stream: TextIO, text: str) -> None:
        """Print whole lines."""
        lines = self._lines
        self.draw([])
        stream.write(text)
        stream.flush()
        self.draw(lines)


class _Above:
    """A stream whose lines are printed above the live ones, as soon as they are whole."""

    def __init__(self, live: LiveLines, stream: TextIO):
        self._live, self._stream, self._begun = live, stream, ""

    def write(self, text: str) -> int:
        whole, newline, self._begun = (self._begun + text).rpartition("\n")
        if newline:
            self._live.above(self._stream, whole + newline)
        return len(text)

    def flush(self) -> None:
        """A line that is not whole has to wait, or the live ones would be drawn behind it."""

    def finish(self) -> None:
        """Print what was begun, when there are no live lines any more."""
        self._stream.write(self._begun)
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def fitted(parts: Sequence[tuple[str, int]], columns: int) -> str:
    """Parts in a line, two spaces between them; where there is no room, those of the highest number are left out."""
    kept = list(parts)
    while len(kept) > 1 and cells(_joined(kept)) > columns:
        kept.remove(max(kept, key=lambda part: part[1]))
    line = _joined(kept)
    while cells(line) > columns:
        line = line[:-2] + "…" if len(line) > 1 else ""
    return line


def _joined(parts: Sequence[tuple[str, int]]) -> str:
    return "  ".join(text for text, _ in parts)


class Progress:
    """What the live line of one operator shows."""

    def __init__(self, epochs: int, batch_size: int, clock: Callable[[], float] = time.monotonic):
        self._epochs, self._batch_size, self._clock = epochs, batch_size, clock
        self._begun_at: float | None = None
        self._begun_with = 0.0
        self._share = 0.0
        self._epoch = self._done = 0
        self._speed = self._loss = self._accuracy = 0.0

    def begin(self, position: Position) -> None:
        """The operator begins an epoch; how long the whole takes is reckoned from the first that it begins."""
        if self._begun_at is None:
            self._begun_at, self._begun_with = self._clock(), self._share_at(position)
        self._epoch = position.epoch

    def piece(self, position: Position, losses: np.ndarray, accuracies: np.ndarray) -> None:
        """Some iterations more."""
        self._share, self._done = self._share_at(position), position.done
        self._speed = position.done * self._batch_size / position.seconds if position.seconds else 0.0
        self._loss, self._accuracy = float(losses.mean()), float(accuracies.mean())

    def _share_at(self, position: Position) -> float:
        return (position.epoch + position.done / position.iterations) / self._epochs

    def line(self, name: str, columns: int) -> str:
        """As much as there is room for; what matters least goes first."""
        if not self._done:
            return fitted([(name, 0), ("waits for its turn", 1)], columns)
        parts = [
            (name, 0),
            (f"{'epoch ' if columns >= 60 else ''}{self._epoch + 1}/{self._epochs}", 1),
            (f"{self._share:4.0%}", 6),
            (f"loss {figure(self._loss)}", 2),
            (f"accuracy {self._accuracy:.4f}", 4),
            (f"{_short(self._speed)} images/s", 5),
            (self._left(), 3),
        ]
        return fitted(parts, columns)

    def _left(self) -> str:
        """The time until the operator has done its last iteration, all that goes on beside it included."""
        came = self._share - self._begun_with
        if self._share >= 1:
            return "done"
        if came <= 0 or self._begun_at is None:
            return "? left"
        seconds = round((self._clock() - self._begun_at) / came * (1 - self._share))
        hours, minutes = divmod(seconds // 60, 60)
        clock = f"{hours}:{minutes:02}" if hours else f"{minutes}"
        return f"{clock}:{seconds % 60:02} left"


def _short(number: float) -> str:
    """1234567 as 1.23M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"
