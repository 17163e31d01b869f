"""What a target is: a reader of bytes that a stranger may have written, as a function of those bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.errors import AppError, DataError

BETWEEN = b"\xff--\xff"
"""What stands between two files in one input."""


@dataclass(frozen=True)
class Target:
    """A reader, inputs that it can make sense of, and the error that it raises for all others."""

    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    error: type[AppError] = DataError

    def __call__(self, content: bytes) -> bool:
        """Give the bytes to the reader; tells whether it took them."""
        try:
            self.read(content)
        except self.error:
            return False
        return True


def in_a_file(read: Callable[[Path], object], ending: str = "") -> Callable[[bytes], None]:
    """A reader of bytes, made of one of files."""

    def reader(content: bytes) -> None:
        with tempfile.NamedTemporaryFile(suffix=ending) as file:
            file.write(content)
            file.flush()
            read(Path(file.name))

    return reader
