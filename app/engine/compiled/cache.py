"""Compiled code on disk: a folder of generated sources, beside which Numba keeps what it compiled from them.

A source's name is the hash of everything that it depends on, so a file is never changed, only added; that two
processes write it at once does no harm.
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

numba_alone.load()

LIMIT = 256
"""The number of sources that are kept; the ones that were unused for longest go first."""


def folder() -> Path | None:
    """Where compiled code is kept: `OPSMITH_CACHE`, else the checkout's .cache, else the user's; None if unwritable."""
    wanted = os.environ.get("OPSMITH_CACHE")
    checkout = Path(__file__).resolve().parents[3]
    candidates = [Path(wanted)] if wanted else [_in_checkout(checkout), _of_user()]
    for candidate in candidates:
        if candidate is not None and _writable(candidate):
            return candidate
    return None


def _in_checkout(checkout: Path) -> Path | None:
    return checkout / ".cache" / "compiled" if (checkout / "pyproject.toml").is_file() else None


def _of_user() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "opsmith" / "compiled"
    except RuntimeError:  # there is no home
        return None


def _writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


@lru_cache(maxsize=1)
def environment() -> str:
    """Everything outside a Program that its compiled code depends on."""
    versions = [sys.version, numba.__version__, llvmlite.__version__, np.__version__, platform.machine()]
    called = fingerprint(*runtime.CALLED)
    cpu = [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    return repr([*versions, *cpu, blas.description(), blas.wide(), called])


@lru_cache(maxsize=1)
def _temporary() -> Path:
    """A folder for this process alone, where no other can be written."""
    print("note: compiled code cannot be kept, as no cache folder can be written; set OPSMITH_CACHE", file=sys.stderr)
    path = Path(tempfile.mkdtemp(prefix="opsmith-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def remembered(key: str, make: Callable[[], Any]) -> Any:
    """The plain data that `make` gives, made once for this key and environment and then taken from disk."""
    path = (folder() or _temporary()) / f"note_{fingerprint(key, environment())[:32]}.txt"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # there is none, or it is damaged
        path.unlink(missing_ok=True)
    value = make()
    _write(path, json.dumps(value))
    return value


def load(text: str, functions: dict[str, Callable[..., Any]]) -> ModuleType:
    """Generated source as a module; its functions are compiled when they are first called, or taken from disk."""
    key = fingerprint(text, *(functions[name] for name in sorted(functions)), environment())[:32]
    where = folder() or _temporary()
    path = where / f"program_{key}.py"
    if path.exists():
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))  # read now; Numba goes by the other time
    else:
        _write(path, text)
        _prune(where)
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


def _write(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        os.link(temporary, path)  # fails where another process was first: its file stays, and keeps its time
    except FileExistsError:
        pass
    except OSError:
        os.replace(temporary, path)
        return
    os.unlink(temporary)


def _prune(where: Path) -> None:
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
    try:
        function.compile(signature)
    except numba.core.errors.NumbaError:
        raise
    except Exception:  # what is on disk is damaged, and is read by pickle, which fails in many ways
        _forget(Path(str(module.__file__)))
        function.compile(signature)
    if sum(function.stats.cache_misses.values()):
        _tidy_memory()


def _tidy_memory() -> None:
    """Give back what compiling has left behind, some 10 MB of it in cycles, before the next function is compiled."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # where the C library is another than GNU's
        ctypes.CDLL(None).malloc_trim(0)
