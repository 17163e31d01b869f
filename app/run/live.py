"""Live lines at the bottom of a terminal, and the progress of an operator in such a line."""

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
"""Erases the lines. The cursor rests at the beginning of the first, so other output starts with this."""


def can_draw(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that supports cursor movement."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def columns_of(stream: TextIO) -> int | None:
    """Return the width of a terminal in characters; None if the stream is not a terminal or the width is unknown."""
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
        """Show all later output above the lines."""
        if self._streams is None:
            self._streams = sys.stdout, sys.stderr
            above: Any = [_Above(self, stream) for stream in self._streams]
            sys.stdout, sys.stderr = above

    def end(self) -> None:
        """Erase the lines and restore normal output."""
        if self._streams is not None:
            above = sys.stdout, sys.stderr
            sys.stdout, sys.stderr = self._streams
            self._streams = None
            self.draw([])
            for stream in above:
                if isinstance(stream, _Above):
                    stream.finish()

    def room(self) -> tuple[int, int]:
        """The maximum number of characters per line, and of lines."""
        columns, rows = _size(self._terminal)
        return (columns or 80) - 1, max((rows or 24) - 1, 1)

    def draw(self, lines: Sequence[str]) -> None:
        """Replace the lines."""
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
    """A stream whose complete lines are printed above the live ones."""

    def __init__(self, live: LiveLines, stream: TextIO):
        self._live, self._stream, self._begun = live, stream, ""

    def write(self, text: str) -> int:
        whole, newline, self._begun = (self._begun + text).rpartition("\n")
        if newline:
            self._live.above(self._stream, whole + newline)
        return len(text)

    def flush(self) -> None:
        """Incomplete lines stay buffered; otherwise the live lines would be drawn after them."""

    def finish(self) -> None:
        """Print an incomplete line after the live lines have ended."""
        self._stream.write(self._begun)
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def fitted(parts: Sequence[tuple[str, int]], columns: int) -> str:
    """Join parts by two spaces; if they do not fit, drop those with the highest number."""
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
    """The live line of one operator."""

    def __init__(self, epochs: int, batch_size: int, clock: Callable[[], float] = time.monotonic):
        self._epochs, self._batch_size, self._clock = epochs, batch_size, clock
        self._begun_at: float | None = None
        self._begun_with = 0.0
        self._share = 0.0
        self._epoch = self._done = 0
        self._speed = self._loss = self._accuracy = 0.0

    def begin(self, position: Position) -> None:
        """The operator begins an epoch. The time left is estimated from the first epoch that it begins."""
        if self._begun_at is None:
            self._begun_at, self._begun_with = self._clock(), self._share_at(position)
        self._epoch = position.epoch

    def piece(self, position: Position, losses: np.ndarray, accuracies: np.ndarray) -> None:
        """Some more iterations are done."""
        self._share, self._done = self._share_at(position), position.done
        self._speed = position.done * self._batch_size / position.seconds if position.seconds else 0.0
        self._loss, self._accuracy = float(losses.mean()), float(accuracies.mean())

    def _share_at(self, position: Position) -> float:
        return (position.epoch + position.done / position.iterations) / self._epochs

    def line(self, name: str, columns: int) -> str:
        """Format the line for the available width, dropping the least important parts first."""
        if not self._done:
            return fitted([(name, 0), ("waiting", 1)], columns)
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
        """Estimate the time until the operator's last iteration, including the training of other operators."""
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
    """Format 1234567 as 1.23M."""
    number = float(f"{number:.3g}")
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"
