"""Lines at the bottom of a terminal that change in place, while all that is printed goes above them."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO

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
    while len(kept) > 1 and _cells(_joined(kept)) > columns:
        kept.remove(max(kept, key=lambda part: part[1]))
    line = _joined(kept)
    while _cells(line) > columns:
        line = line[:-2] + "…" if len(line) > 1 else ""
    return line


def _joined(parts: Sequence[tuple[str, int]]) -> str:
    return "  ".join(text for text, _ in parts)


def _cells(text: str) -> int:
    """How many columns a text takes: two for each of the wide letters of East Asia, none for an accent of its own."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) != 0 for letter in text)
