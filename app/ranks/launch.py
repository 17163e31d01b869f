"""Whether an MPI launcher started this process as one of several ranks.

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
    """The rank and the number of ranks that the launcher set; 0 if it set no number."""

    rank: int
    size: int


def launched() -> Launch | None:
    """The Launch of this process; None without a launcher, or with one rank only."""
    launch = _launch()
    return None if launch is None or launch.size == 1 else launch


def has_launcher() -> bool:
    """Whether a launcher started this process, even if as the only rank."""
    return _launch() is not None


def _launch() -> Launch | None:
    for rank, size in _LAUNCHERS:
        if os.environ.get(rank, "").isdecimal():
            number = os.environ.get(size, "")
            return Launch(int(os.environ[rank]), int(number) if number.isdecimal() else 0)
    return None
