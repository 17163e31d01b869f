"""Locks on folders in which files are being written, which the system releases when their process dies.

So leftovers of a killed process can be told from files that another process is writing, and be removed. (The package
filelock would leave lock files in the user's folders, and has no shared locks without a database.)
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path


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
