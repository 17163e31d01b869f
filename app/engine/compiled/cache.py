"""The disk cache: compiled code and the results of trial compilations. Files are never modified, so processes may write
concurrently. The first line is a checksum of the rest. Without a writable folder, each process compiles again.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import platform
import shutil
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

from app import cache_folder
from app.cache_folder import folder, note_unkept, why_no_folder
from app.engine.compiled import blas, runtime
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.vectors import processor

LIMIT = 512
"""The maximum number of files of each kind; the least recently used are removed first."""

_notes: OrderedDict[str, bytes] = OrderedDict()
"""The data that this process has read or made, by name. A deep network asks for the same data hundreds of times."""


@lru_cache(maxsize=1)
def environment() -> str:
    """Return everything outside a Program that its compiled code depends on."""
    versions = [sys.version, numba.__version__, llvmlite.__version__, np.__version__, platform.machine()]
    called = fingerprint(*runtime.CALLED.values())
    return repr(
        [*versions, *processor(), blas.description(), blas.wide(), called, hash_of_package(Path(__file__).parent)]
    )


def hash_of_package(folder: Path) -> str:
    """Return a hash of a package's files.

    The printed source of a Program does not show everything of the tree that becomes machine code, such as the types of
    variables. An edit of anything in this package must not find code that was compiled before it.
    """
    files = sorted(file for file in folder.rglob("*.py*") if file.parent.name != "__pycache__")
    return fingerprint(*(part for file in files for part in (str(file.relative_to(folder)), file.read_bytes())))


@lru_cache(maxsize=1)
def _temporary() -> Path:
    """Return a temporary folder for this process; a path that does not exist if it cannot be created."""
    note_unkept(why_no_folder())
    try:
        path = Path(tempfile.mkdtemp(prefix="opsmith-"))
    except OSError:
        return Path("no temporary folder")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


class Passing(Exception):  # noqa: N818 - it is no error
    """Raised by what makes data for `remembered`, with data that may be other ones next time."""

    def __init__(self, data: Any):
        super().__init__(data)
        self.data = data


def remembered(key: str, make: Callable[[], Any]) -> Any:
    """Return the plain data of `make()`, from disk if cached for this key and environment; `Passing` data once."""
    name = f"note_{fingerprint(key, environment())[:32]}.txt"
    note = _notes.get(name)
    if note is None:
        note = read(name)
        if note is None:
            try:
                note = json.dumps(make()).encode()
            except Passing as passing:
                return passing.data
            keep(name, note)
        _notes[name] = note
        if len(_notes) > LIMIT:
            _notes.popitem(last=False)
    return json.loads(note)


def read(name: str) -> bytes | None:
    """Return the cached data under a name; None if missing, damaged or not the user's own."""
    path = _where() / name
    try:
        checksum, _, data = cache_folder.read(path).partition(b"\n")
    except OSError:
        return None
    if checksum.decode("ascii", "replace") != fingerprint(data):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the least recently used are removed first
    return data


def keep(name: str, data: bytes) -> None:
    """Store data under a name, if possible. A file that another process wrote first is kept."""
    path, content = _where() / name, fingerprint(data).encode() + b"\n" + data
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            if not _linked(temporary, path) and read(name) != data:
                os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        note_unkept(f"{path}: {error.strerror or error}")
    _prune(path.parent, name.partition("_")[0])


def _where() -> Path:
    return folder() or _temporary()


def _linked(temporary: str, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except OSError:  # the file exists, or the file system has no hard links
        return False
    return True


def _prune(where: Path, kind: str) -> None:
    with contextlib.suppress(OSError):
        paths = list(where.glob(f"{kind}_*"))
        for path in sorted(paths, key=_last_used)[:-LIMIT] if len(paths) > LIMIT else ():
            path.unlink(missing_ok=True)


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process removed it
        return 0.0
