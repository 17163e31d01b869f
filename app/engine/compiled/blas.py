"""The BLAS that NumPy has loaded: its functions by address, on one thread for each of ours.

A second BLAS would bring a second pool of threads, which wait for work by spinning and take the cores from the
first; so there is only this one.
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
    """The loaded library, and how it spells its functions."""
    for info in _controller().info():
        library = ctypes.CDLL(info["filepath"])
        for spelling in _SPELLINGS:
            if hasattr(library, spelling.format("cblas_sgemm")):
                return library, spelling
    raise AppError("NumPy's BLAS has no C interface that can be called here; use engine=reference")


def address(name: str) -> int:
    """The address of a function of BLAS's C interface."""
    library, spelling = _library()
    return ctypes.cast(getattr(library, spelling.format(name)), ctypes.c_void_p).value or 0


def wide() -> bool:
    """Whether the library takes 64-bit sizes."""
    return "64" in _library()[1]


def description() -> str:
    """Which library and which of its kernels are used: part of what compiled code depends on."""
    return ", ".join(f"{i['internal_api']} {i['version']} {i.get('architecture')}" for i in _controller().info())


_lock = threading.RLock()
_inside = 0
"""How many calls hold BLAS to one thread now; the setting is global to the process."""
_limits: Any = None


def threads() -> int:
    """The number of threads that BLAS would use by itself."""
    with _lock:
        if _inside and _limits is not None:
            return _limits.get_original_num_threads()["blas"] or 1
        return max((info["num_threads"] for info in _controller().info()), default=1)


@contextmanager
def single() -> Iterator[None]:
    """Keep BLAS on the calling thread inside the block; the last of several blocks to end restores its threads.

    The count is raised before and lowered after everything else, so that a signal handler that comes between and runs
    a Program itself finds, and leaves, a state that is whole.
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
