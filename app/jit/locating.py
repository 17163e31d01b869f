"""Errors raised while a function is traced get the line of the user's source that they come from."""

from __future__ import annotations

import linecache
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from app.errors import AppError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@contextmanager
def with_users_line(label: str) -> Iterator[None]:
    """Add the innermost line of a user's source to what is raised inside the block."""
    try:
        yield
    except AppError as error:
        line = line_of(error.__traceback__)
        if not line or line in str(error):
            raise
        raise type(error)(f"{error}\n  at {line}, while {label} was traced") from error


def line_of(frames: TracebackType | None) -> str:
    """The innermost frame outside of this package: file, line and source."""
    for frame, line in reversed(list(traceback.walk_tb(frames))):
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            source = linecache.getline(file, line).strip()
            return f"{file}:{line}" + (f": {source}" if source else "")
    return ""
