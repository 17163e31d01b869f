"""Writing a file so that it is whole or not there: beside its place first, then moved into it."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path

from app.claims import claim
from app.errors import FileError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, and the folders that it lies in; one that is there is replaced once the new one is whole.

    What processes left that were killed while they wrote the same file is cleared away.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")  # a name of its own for each writer
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with claim(path.parent, lambda: _clear(path)):
            try:
                with temporary.open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error


def _clear(path: Path) -> None:
    leftover = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{32}}")
    for name in os.listdir(path.parent):
        if leftover.fullmatch(name):
            (path.parent / name).unlink(missing_ok=True)
