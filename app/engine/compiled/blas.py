"""The BLAS that NumPy has loaded: the addresses of its functions, and control of its threads. The engine uses only this
BLAS, because a second one would start a second pool of spinning threads that compete for the cores.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
_inside = 0
"""The number of active calls that limit BLAS to one thread; the setting is global to the process."""
_limits: Any = None


def threads() -> int:
    """Return the number of threads that BLAS uses by default."""
    with _lock:
        if _inside and _limits is not None:
            return _limits.get_original_num_threads()["blas"] or 1
        return max((info["num_threads"] for info in _controller().info()), default=1)


@contextmanager
def single() -> Iterator[None]:
    """Limit BLAS to one thread inside the block; the last of several blocks restores its threads. The count is raised
    first and lowered last, so that a signal handler that runs a Program sees a consistent state.
    """
    global _inside, _limits
    with _lock:
        _inside += 1
        if _inside == 1:
            _limits = _controller().limit(limits=1)
    try:
        yield
    finally:
        with _lock:
            if _inside == 1:
                _limits.restore_original_limits()
            _inside -= 1
