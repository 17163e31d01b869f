"""The folder of compiled code. A problem with it never ends a run."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

_noted: set[str] = set()


def note_unkept(reason: object) -> None:
    """Print once that compiled code is not stored."""
    if not _noted:
        _noted.add("")
        print(f"note: compiled code cannot be kept, so each run compiles anew: {reason}", file=sys.stderr)


def folder() -> Path | None:
    """The folder of compiled code: `OPSMITH_CACHE`, else the checkout's .cache, else the user's; None if unusable.

    The code there is run, so the folder must be the user's own, and nobody else may write into it.
    """
    wanted = os.environ.get("OPSMITH_CACHE")
    checkout = Path(__file__).resolve().parents[1]
    candidates = [Path(wanted)] if wanted else [_in_checkout(checkout), _of_user()]
    return next((path for path in candidates if path is not None and _usable(path)), None)


def why_no_folder() -> str:
    """Why `folder` found none, in words."""
    wanted = os.environ.get("OPSMITH_CACHE")
    found = f"OPSMITH_CACHE={wanted} is" if wanted else "neither the checkout's .cache nor the user's cache folder is"
    return f"{found} a writable folder that belongs to you alone; set OPSMITH_CACHE to one"


def _in_checkout(checkout: Path) -> Path | None:
    return checkout / ".cache" / "compiled" if (checkout / "pyproject.toml").is_file() else None


def _of_user() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "opsmith" / "compiled"
    except RuntimeError:  # there is no home folder
        return None


def _usable(path: Path) -> bool:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(path):
            return False
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def _is_private(path: Path) -> bool:
    """Whether a folder is the user's own. Others lose the right to write to it; if one of them did, it is not."""
    if not hasattr(os, "geteuid"):
        return True
    me, info = os.geteuid(), path.stat()
    if info.st_uid != me:
        return False
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        inside = [each.lstat() for each in path.iterdir()]
        if any(each.st_uid != me or each.st_mode & stat.S_IWOTH for each in inside if not stat.S_ISLNK(each.st_mode)):
            return False
        path.chmod(info.st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))
    return True
