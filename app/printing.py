"""Printing text from elsewhere: names of files and operators, messages of exceptions."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


def escaped(text: str) -> str:
    """Text with escapes in place of what a terminal would obey, as it is written in a Python string.

    Those are control characters but line ends and tabs, and characters that are not seen or turn the direction of
    writing.
    """
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or _harmless(c) else c.encode("unicode_escape").decode() for c in text)


def _harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


LONGEST_LINE, MOST_LINES = 500, 60
"""The maximum letters of a line and the maximum lines of a message."""
_PASSWORD = re.compile(r"(\b[a-z][a-z+.-]*://)[^/\s?#]*@", re.IGNORECASE)


def message(text: str) -> str:
    """Text of an error or a note as it is printed: escaped, without passwords of addresses, and with an end.

    Messages repeat what is in files and in other messages, which may be of any length.
    """
    lines = without_passwords(text).split("\n")
    lines = lines[:MOST_LINES] + ([f"({len(lines) - MOST_LINES:,} more lines)"] if len(lines) > MOST_LINES else [])
    return "\n".join(map(_shortened, lines))


def _shortened(line: str) -> str:
    """A line, escaped, without its middle if it is too long: what to do comes last."""
    line = escaped(line[: 2 * LONGEST_LINE] + line[2 * LONGEST_LINE :][-2 * LONGEST_LINE :])
    half = LONGEST_LINE // 2
    return line if len(line) <= LONGEST_LINE else f"{line[: half - 1]} … {line[2 - half :]}"


def without_passwords(text: str) -> str:
    """Text in which addresses such as https://name:password@host/ have no name and no password."""
    return _PASSWORD.sub(r"\1", text)


def say(text: str, file: TextIO | None = None) -> None:
    """Print escaped text, by default on standard output; on standard error, a message."""
    print(message(text) if file is sys.stderr else escaped(text), file=sys.stdout if file is None else file, flush=True)


RED, PLAIN = "\x1b[1;31m", "\x1b[0m"


def in_colour(stream: TextIO) -> bool:
    """Whether to print in colour: on a terminal that can, unless NO_COLOR is set (see no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def alarm(text: str, file: TextIO) -> None:
    """Print what nobody should miss: in red where there are colours."""
    text = message(text)
    print(f"{RED}{text}{PLAIN}" if in_colour(file) else text, file=file, flush=True)


def figure(value: float) -> str:
    """A loss with four decimals, or with an exponent where it is too large for them to say anything."""
    return f"{value:.4f}" if not abs(value) >= 1e6 else f"{value:.4g}"


def wrapped(text: str, columns: int | None, indent: int = 2) -> str:
    """Text whose lines are broken between words to fit into so many columns; what is broken off is indented."""
    if columns is None:
        return text
    lines = [
        textwrap.wrap(line, columns, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
        if len(line) > columns
        else [line]
        for line in text.split("\n")
    ]
    return "\n".join(part for parts in lines for part in parts)


def cells(text: str) -> int:
    """The number of terminal columns of a text: two for a wide East Asian letter, none for a combining accent."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) != 0 for letter in text)


def table(rows: Sequence[Sequence[str]], columns: int | None = None) -> list[str]:
    """A table as lines, the first row its head: the first column to the left, the others to the right.

    Where it does not fit into so many columns (80 where that is not known), each cell has a line of its own.
    """
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * len(widths) - 2 > (columns or 80):
        (_, *heads), *others = rows
        cut = [(name, *(f"  {head}  {cell}" for head, cell in zip(heads, row, strict=True))) for name, *row in others]
        return [line for lines in cut for line in lines]
    lines = []
    for first, *rest in rows:
        padded = [" " * (width - cells(cell)) + cell for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join([first + " " * (widths[0] - cells(first)), *padded]).rstrip())
    return lines


@contextmanager
def json_alone() -> Iterator[TextIO]:
    """Standard output for JSON alone. All else, also what native code and processes print, goes to standard error."""
    out = sys.stdout
    try:
        standard = out.fileno()
    except (OSError, ValueError):  # not a file of the operating system
        with redirect_stdout(sys.stderr):
            yield out
        return
    with os.fdopen(os.dup(standard), "w", encoding="utf-8") as json_out:
        os.dup2(2, standard)
        try:
            with redirect_stdout(sys.stderr):
                yield json_out
        finally:
            if os.name == "posix":
                ctypes.CDLL(None).fflush(None)  # what native code printed
            os.dup2(json_out.fileno(), standard)
