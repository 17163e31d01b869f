"""Compiled code on disk: a folder of generated sources, beside which Numba keeps what it compiled from them.

A source's name is the hash of everything that it depends on, so a file is never changed, only added; that two
processes write it at once does no harm.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np

from app.engine.compiled import blas
from app.engine.compiled.fingerprint import fingerprint

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
    return repr([*versions, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), blas.description()])


@lru_cache(maxsize=1)
def _warn_once() -> None:
    print("note: compiled code cannot be kept, as no cache folder can be written; set OPSMITH_CACHE", file=sys.stderr)


def load(text: str, functions: dict[str, Callable[..., Any]]) -> ModuleType:
    """Generated source as a module; its functions are compiled when they are first called, or taken from disk."""
    key = fingerprint(text, *(functions[name] for name in sorted(functions)), environment())[:32]
    where = folder()
    if where is None:
        _warn_once()
        where = Path(tempfile.mkdtemp(prefix="opsmith-"))
        import atexit

        atexit.register(shutil.rmtree, where, ignore_errors=True)
    path = where / f"program_{key}.py"
    if path.exists():
        os.utime(where)
    else:
        _write(path, text)
        _prune(where)
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where Numba looks for the module of a function that it takes from disk
    for name, function in functions.items():
        module.__dict__[name] = function if hasattr(function, "py_func") else numba.njit(nogil=True)(function)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


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
    sources = sorted(where.glob("program_*.py"), key=lambda path: path.stat().st_mtime)
    for path in sources[:-LIMIT]:
        for old in [path, *(where / "__pycache__").glob(f"{path.stem}.*")]:
            old.unlink(missing_ok=True)


def clear() -> None:
    """Remove everything that is kept."""
    where = folder()
    if where is not None:
        shutil.rmtree(where, ignore_errors=True)
