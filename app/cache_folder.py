"""The folder of compiled code. A problem with it never ends a run."""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from pathlib import Path

from app.files import checkout, user_cache
from app.printing import message

_noted: set[str] = set()


def note_unkept(reason: object) -> None:
    """Print once that compiled code is not stored."""
    if not _noted:
        _noted.add("")
        print(message(f"note: compiled code cannot be kept, so each run compiles anew: {reason}"), file=sys.stderr)


def folder() -> Path | None:
    """The folder of compiled code: `OPSMITH_CACHE`, else the checkout's .cache, else the user's; None if unusable.

    The code there is run, so the folder must be the user's own, and nobody else may write into it.
    """
    from_environment = os.environ.get("OPSMITH_CACHE")
    in_checkout = None if (root := checkout()) is None else root / ".cache" / "compiled"
    of_user = None if (cache := user_cache()) is None else cache / "compiled"
    candidates = [Path(from_environment)] if from_environment else [in_checkout, of_user]
    return next((path for path in candidates if path is not None and _usable(path)), None)


def why_no_folder() -> str:
    """Why `folder` found none, in words."""
    from_environment = os.environ.get("OPSMITH_CACHE")
    places = (
        f"OPSMITH_CACHE={from_environment} is not"
        if from_environment
        else "neither the checkout's .cache nor the user's cache folder is"
    )
    return f"{places} a writable folder that belongs to you alone; set OPSMITH_CACHE to one"


def read(path: Path) -> bytes:
    """Return the content of a file in the folder of compiled code.

    What is in the file is run, so it is a PermissionError if the file, or its folder, belongs to another user or others
    may write to it. The check is on the open file, so that nothing can be exchanged after it.
    """
    if not _is_private(path.parent.stat()):
        raise PermissionError(errno.EPERM, "others may write to its folder", str(path))
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or not _is_private(about):
            raise PermissionError(errno.EPERM, "others may write to it", str(path))
        return file.read()


def _usable(path: Path) -> bool:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = path.stat()
        if not _is_owned(about):
            return False
        if not _is_private(about):
            path.chmod(about.st_mode & ~_OTHERS_WRITE)  # what they wrote before is not read
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def _is_owned(about: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or about.st_uid == os.geteuid()


def _is_private(about: os.stat_result) -> bool:
    """Whether a file or folder is the user's own, and nobody else may write to it."""
    return not hasattr(os, "geteuid") or (_is_owned(about) and not about.st_mode & _OTHERS_WRITE)
