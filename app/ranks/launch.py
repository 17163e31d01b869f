"""How this process was started: by itself, or by an MPI launcher as one of several ranks.

Launchers set environment variables, so nothing of MPI is imported to find out that there is none.
"""

from __future__ import annotations

import os
from typing import NamedTuple

_LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE"),  # MPICH and its kin, Slurm with PMI-2
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_NTASKS"),
)


class Launch(NamedTuple):
    """What the launcher said: which of how many ranks; 0 where it did not say how many."""

    rank: int
    size: int


def launched() -> Launch | None:
    """What a launcher said of this process; None without a launcher, or where it started one rank only."""
    for rank, size in _LAUNCHERS:
        if os.environ.get(rank, "").isdecimal():
            said = os.environ.get(size, "")
            launch = Launch(int(os.environ[rank]), int(said) if said.isdecimal() else 0)
            return None if launch.size == 1 else launch
    return None


def hide_launch() -> None:
    """Remove the launcher's variables, so that no process that this one starts takes itself for a rank."""
    for rank, _ in _LAUNCHERS:
        os.environ.pop(rank, None)
