"""The BLAS that NumPy has loaded: the addresses of its functions, and control of its threads. The engine uses only this
BLAS, because a second one would start a second pool of spinning threads that compete for the cores.
"""

from __future__ import annotations

import ctypes
import threading
from functools import lru_cache
from typing import Any

from app.errors import AppError

_SPELLINGS = ("scipy_{}64_", "{}64_", "scipy_{}", "{}")
"""How builds of OpenBLAS name their functions; those with 64 take 64-bit sizes."""


@lru_cache(maxsize=1)
def _controller() -> Any:
    import numpy  # noqa: F401 - NumPy loads the library
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@lru_cache(maxsize=1)
def _library() -> tuple[ctypes.CDLL, str]:
    """Return the loaded library and the naming scheme of its functions."""
    for info in _controller().info():
        library = ctypes.CDLL(info["filepath"])
        for spelling in _SPELLINGS:
            if hasattr(library, spelling.format("cblas_sgemm")):
                return library, spelling
    raise AppError("NumPy's BLAS has no C interface that can be called here; use engine=reference")


def address(name: str) -> int:
    """Return the address of a function of BLAS's C interface."""
    library, spelling = _library()
    return ctypes.cast(getattr(library, spelling.format(name)), ctypes.c_void_p).value or 0


def wide() -> bool:
    """Return whether the library takes 64-bit sizes."""
    return "64" in _library()[1]


def description() -> str:
    """Return the library and its kernels. Cache keys contain it."""
    return ", ".join(f"{i['internal_api']} {i['version']} {i.get('architecture')}" for i in _controller().info())


_lock = threading.RLock()
_users: set[object] = set()
"""What limits BLAS to one thread; the setting is global to the process."""
_before: list[tuple[Any, int]] = []
"""The loaded libraries with their threads before the limit; empty if there is none."""


def threads() -> int:
    """Return the number of threads that BLAS uses by default."""
    with _lock:
        return max((count for _, count in _before or _counts()), default=1)


def _counts() -> list[tuple[Any, int]]:
    return [(library, library.num_threads or 1) for library in _controller().lib_controllers]


def limit(user: object) -> None:
    """Limit BLAS to one thread until all users have released it."""
    with _lock:
        _users.add(user)
        counts = _counts()
        if not _before:
            _before.extend(counts)
        for library, _ in counts:
            library.set_num_threads(1)


def release(user: object) -> None:
    """Give BLAS its threads back if there is no other user. It can be repeated, also after `limit` was interrupted."""
    with _lock:
        _users.discard(user)
        if not _users:
            for library, count in _before:
                library.set_num_threads(count)
            _before.clear()
