"""Locks that the system drops when their process dies: on a folder that is in use, and on a file that is written.

What a killed process left half-written can so be told from what another one is writing now, and be removed. (The
package filelock makes a lock file beside each of them, which would stay in the user's folders, and has no shared locks
without a database.)
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
    """Hold a lock on a folder, shared with all other processes that do; if there are none, `clear` is called first.

    Where the system or the file system has no such locks, nothing is cleared.
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
        os.close(handle)  # which drops the lock


_PATIENCE = 2.0
"""Seconds that a process may take to end after it, or its mpiexec, was killed."""


def lock(file: IO[str]) -> bool:
    """Lock an open file until it is closed or this process ends; False if another process holds it.

    That process may be ending, so it is waited for a little. Where there are no such locks, the answer is True.
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
