"""Knowing whether anybody is at work in a folder: by a claim on it, which the system drops when its process dies.

So what a killed process left half-written can be told from what another one is writing now, and be cleared away.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def claim(folder: Path, clear: Callable[[], None]) -> Iterator[None]:
    """Claim a folder, beside all others who do; if nobody had, `clear` is called first.

    Where the system or the file system has no such locks, nothing is cleared, and all else goes on as usual.
    """
    try:
        import fcntl  # not on Windows

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with contextlib.suppress(OSError):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                clear()
            fcntl.flock(handle, fcntl.LOCK_SH)  # others hold the lock for themselves only while they clear
        yield
    finally:
        os.close(handle)  # and with it the claim
