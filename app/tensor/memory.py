"""The memory of arrays that are no longer needed stays with the process, for the next arrays.

A training step makes the same arrays again and again, of hundreds of kilobytes each. By itself glibc gives the memory
of such arrays back to the system when it is freed, and new pages cost time: a tenth of each epoch of the reference
network, half as much again in the first. Other frameworks keep memory, too, in allocators of their own. As this
changes the process that the framework is a guest in, it is done where training is sure to come: by an optimiser of
Tensors.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # the names are those of malloc.h
_LARGEST = 32 << 20
"""The most that glibc takes for the size from which memory is mapped for one array alone."""


@cache
def keep_freed_memory() -> bool:
    """Have the C library keep freed memory; says whether it does. What the environment sets is left as it is."""
    if any(name.startswith("MALLOC_") for name in os.environ) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library than glibc
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, 8 * _LARGEST))
