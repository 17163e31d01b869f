"""Keeping freed memory in the process for later arrays.

Every training step allocates the same arrays, of hundreds of kilobytes each. By default glibc returns such memory to
the system when it is freed, and new pages cost a tenth of each epoch of the reference network, and more of the first.
Other frameworks have caching allocators for this reason. The setting affects the whole process, so only an optimiser of
Tensors makes it, when training starts.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names from malloc.h
_LARGEST = 32 << 20
"""The largest mmap threshold that glibc accepts."""


@cache
def keep_freed_memory() -> bool:
    """Make the C library keep freed memory; returns whether it does. Settings in the environment take precedence."""
    if any(name.startswith("MALLOC_") for name in os.environ) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library than glibc
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, 8 * _LARGEST))
