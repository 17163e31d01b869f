"""Keeping freed memory in the process for the next arrays.

A training step allocates the same arrays again and again, of hundreds of kilobytes each. By default glibc returns such
memory to the system when it is freed, and new pages cost time: a tenth of each epoch of the reference network, and half
as much again in the first. Other frameworks keep memory too, in allocators of their own. As this changes the whole
process, only an optimiser of Tensors does it, when training is about to start.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # the names are those of malloc.h
_LARGEST = 32 << 20
"""The largest threshold that glibc accepts for allocating an array with its own mmap."""


@cache
def keep_freed_memory() -> bool:
    """Make the C library keep freed memory; returns whether it does. Settings in the environment are left alone."""
    if any(name.startswith("MALLOC_") for name in os.environ) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library than glibc
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, 8 * _LARGEST))
