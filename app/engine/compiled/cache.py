"""Compiled code on disk: a folder of generated sources, beside which Numba keeps what it compiled from them.

The key of a source is a hash of everything that its compiled code depends on. Names of variables are not part of it,
so that a network which is built again is not compiled again. A file is never changed, only added, so two processes may
write it at once. What cannot be written or read is made anew in each process.
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
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np

from app.engine.compiled import blas, numba_alone, runtime, stand_ins
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.on_disk import folder, note_unkept, why_no_folder

numba_alone.load()

LIMIT = 256
"""The number of sources that are kept; the ones that were unused for longest go first."""


_FORMAT = "3"
"""Another one, where code that was kept before must not be used."""


@lru_cache(maxsize=1)
def environment() -> str:
    """Everything outside a Program that its compiled code depends on."""
    versions = [_FORMAT, sys.version, numba.__version__, llvmlite.__version__, np.__version__, platform.machine()]
    called = fingerprint(*runtime.CALLED)
    cpu = [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    return repr([*versions, *cpu, blas.description(), blas.wide(), called])


@lru_cache(maxsize=1)
def _temporary() -> Path:
    """A folder for this process alone, where no other can be used; one that is not there if none can be made."""
    note_unkept(why_no_folder())
    try:
        path = Path(tempfile.mkdtemp(prefix="opsmith-"))
    except OSError:
        return Path("no temporary folder")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def remembered(key: str, make: Callable[[], Any]) -> Any:
    """The plain data that `make` gives, made once for this key and environment and then taken from disk."""
    path = (folder() or _temporary()) / f"note_{fingerprint(key, environment())[:32]}.txt"
    kept = _read(path)
    if kept is not None:
        checksum, _, text = kept.partition("\n")
        if fingerprint(text) == checksum:
            return json.loads(text)
    text = json.dumps(make())
    _keep(path, f"{fingerprint(text)}\n{text}")
    return json.loads(text)


_loaded: dict[str, ModuleType] = {}
"""The modules of this process, by key."""


def load(text: str, pattern: str, functions: dict[str, Callable[..., Any]]) -> ModuleType:
    """Return generated source as a module, whose functions are compiled when first called or taken from disk.

    Sources with the same `pattern` differ only in the names of variables and share one module: the first one's.
    """
    key = fingerprint(pattern, *(functions[name] for name in sorted(functions)), environment())[:32]
    if key not in _loaded:
        where = folder() or _temporary()
        path = where / f"program_{key}.py"
        _loaded[key] = _module(path, _kept_source(path, text), functions)
    return _loaded[key]


def _kept_source(path: Path, text: str) -> str:
    """Return the file's source, which may have other names than `text`; where there is none, `text`, which is kept.

    The first line holds a checksum of the rest, so that a damaged file is not used.
    """
    kept = _read(path)
    if kept is not None and kept.partition("\n")[0] == _checksum(kept.partition("\n")[2]):
        with contextlib.suppress(OSError):
            os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))  # read now; Numba goes by the other time
        return kept
    text = f"{_checksum(text)}\n{text}"
    _keep(path, text)
    _prune(path.parent)
    return text


def _checksum(text: str) -> str:
    return f"# checksum {fingerprint(text)}"


def _module(path: Path, text: str, functions: dict[str, Callable[..., Any]]) -> ModuleType:
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where Numba looks for the module of a function that it takes from disk
    for name, function in functions.items():
        module.__dict__[name] = _compilable(function)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def _compilable(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as one of Numba's; in what was no such one before, dividing by zero gives what NumPy gives."""
    return function if hasattr(function, "py_func") else numba.jit(**stand_ins.AS_NUMPY)(function)


def _read(path: Path) -> str | None:
    """What was kept in a file; None where there is none, or what is there cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def _keep(path: Path, text: str) -> None:
    """Write a file if that can be done. Where another process was first, its file stays, and keeps its time."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            if not _linked(temporary, path) and _read(path) != text:
                os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        note_unkept(f"{path}: {error.strerror or error}")


def _linked(temporary: str, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except OSError:  # there is a file already, or there are no such links
        return False
    return True


def _prune(where: Path) -> None:
    with contextlib.suppress(OSError):
        for kind in ("program_*.py", "note_*.txt"):
            for path in sorted(where.glob(kind), key=_last_used)[:-LIMIT]:
                path.unlink(missing_ok=True)
                _forget(path)


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_atime
    except FileNotFoundError:  # another process was tidying, too
        return 0.0


def _forget(source: Path) -> None:
    """Remove what Numba keeps of a source."""
    for compiled in (source.parent / "__pycache__").glob(f"{source.stem}.*"):
        compiled.unlink(missing_ok=True)


def ready(module: ModuleType, function: Any, arguments: Sequence[Any]) -> None:
    """Compile a function of generated source for these arguments, or take it from disk, if that was not done yet."""
    if getattr(function, "signatures", True):
        return
    signature = tuple(map(numba.typeof, arguments))
    function.compile(signature)
    if sum(function.stats.cache_misses.values()):
        _tidy_memory()


def _tidy_memory() -> None:
    """Give back what compiling has left behind, some 10 MB of it in cycles, before the next function is compiled."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # where the C library is another than GNU's
        ctypes.CDLL(None).malloc_trim(0)
