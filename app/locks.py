"""Locks on folders in use and on files being written, which the system releases when their process dies.

So leftovers of a killed process can be told from files that another process is writing, and be removed. (The package
filelock would leave lock files in the user's folders, and has no shared locks without a database.)
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def shared_lock(folder: Path, clear: Callable[[], None]) -> Iterator[None]:
    """Hold a shared lock on a folder. If no other process holds one, `clear` is called first.

    On systems and file systems without such locks, nothing is cleared.
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
            fcntl.flock(handle, fcntl.LOCK_SH)  # others hold an exclusive lock only while they clear
        yield
    finally:
        os.close(handle)  # releases the lock


_PATIENCE = 2.0
"""Seconds that a process may take to end after it, or its mpiexec, was killed."""


def lock(file: IO[str]) -> bool:
    """Lock an open file until it is closed or this process ends; False if another process holds it.

    The other process may be ending, so this waits a little. On systems without such locks the result is True.
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
