"""The cache on disk: compiled code, and what compiling a function has shown.

Files are added and never changed, so processes may write at once. The first line is a checksum of the rest. Without a
usable folder, each process compiles anew.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np

from app.engine.compiled import blas, numba_alone, runtime
from app.engine.compiled.fingerprint import fingerprint
from app.numba_cache import folder, note_unkept, why_no_folder

numba_alone.load()

LIMIT = 512
"""How many files of each kind are kept; the least recently used are removed first."""


_FORMAT = "8"
"""Changed when code that was kept before must not be used."""


@lru_cache(maxsize=1)
def environment() -> str:
    """Everything outside a Program that its compiled code depends on."""
    versions = [_FORMAT, sys.version, numba.__version__, llvmlite.__version__, np.__version__, platform.machine()]
    called = fingerprint(*runtime.CALLED)
    cpu = [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    return repr([*versions, *cpu, blas.description(), blas.wide(), called])


@lru_cache(maxsize=1)
def _temporary() -> Path:
    """A folder for this process alone; a path that does not exist if none can be made."""
    note_unkept(why_no_folder())
    try:
        path = Path(tempfile.mkdtemp(prefix="opsmith-"))
    except OSError:
        return Path("no temporary folder")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def remembered(key: str, make: Callable[[], Any]) -> Any:
    """Return the plain data of `make()`, from disk if it was made before for this key and environment."""
    name = f"note_{fingerprint(key, environment())[:32]}.txt"
    kept = read(name)
    if kept is None:
        kept = json.dumps(make()).encode()
        keep(name, kept)
    return json.loads(kept)


def read(name: str) -> bytes | None:
    """Return the data kept under a name; None if there is none, or if it is damaged."""
    path = _where() / name
    try:
        checksum, _, data = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if checksum.decode("ascii", "replace") != fingerprint(data):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the least recently used are removed first
    return data


def keep(name: str, data: bytes) -> None:
    """Keep data under a name, if possible. If another process was first, its file stays."""
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
    _prune(path.parent)


def _where() -> Path:
    return folder() or _temporary()


def _linked(temporary: str, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except OSError:  # the file exists, or the file system has no hard links
        return False
    return True


def _prune(where: Path) -> None:
    with contextlib.suppress(OSError):
        for kind in ("program_*.bin", "function_*.bin", "note_*.txt"):
            for path in sorted(where.glob(kind), key=_last_used)[:-LIMIT]:
                path.unlink(missing_ok=True)


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process removed it
        return 0.0


@contextlib.contextmanager
def memory_given_back() -> Iterator[None]:
    """Give back the memory of what is compiled in the block, some 10 MB of it in cycles.

    Objects from before are left out of the search for cycles, which would take longer than all LLVM does.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()
        with contextlib.suppress(OSError, AttributeError):  # only GNU's C library has it
            ctypes.CDLL(None).malloc_trim(0)
