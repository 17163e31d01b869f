"""What MPI would leave behind when ranks are killed: the file, in memory, through which the ranks of a host talk.

MPICH removes it when all ranks have come to their end. Its name is needed only until each has it open, so it is taken
away then: whoever is killed later, the system gives the memory back with the last of them.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

_MPICH = re.compile(r" (/dev/shm/mpich_shm_\w+)$", re.MULTILINE)


def forget_names(world: Any) -> None:
    """Remove the names of files that all ranks of this host have open. All ranks call it."""
    found = world.gather((world.host, _open_here()))
    for name in set.intersection(*(set(names) for host, names in found if host == world.host)):
        with contextlib.suppress(OSError):  # another rank did
            os.unlink(name)


def _open_here() -> list[str]:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return _MPICH.findall(maps.read())
    except OSError:  # not Linux
        return []
