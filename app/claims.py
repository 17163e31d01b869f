"""Knowing whether anybody is at work in a folder: by a claim on it, which the system drops when its process dies.

So what a killed process left half-written can be told from what another one is writing now, and be cleared away.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO


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


_PATIENCE = 2.0
"""Seconds that a process may take to end once it was killed, or its mpiexec was."""


def hold(file: IO[str]) -> bool:
    """Whether nobody else holds an open file; this process does from now on, until it closes the file or ends.

    Whoever holds it may be ending just now, and is waited for a little. Where there are no such locks, everybody is
    told so.
    """
    try:
        import fcntl
    except ImportError:
        return True
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        except OSError:
            return True
        else:
            return True
