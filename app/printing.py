"""Printing text that others wrote: names of files and operators, and the words of exceptions."""

from __future__ import annotations

import sys
import unicodedata
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


def say(text: str, file: TextIO | None = None) -> None:
    """Print text, by default on standard output, as `escaped` makes it."""
    print(escaped(text), file=sys.stdout if file is None else file, flush=True)
