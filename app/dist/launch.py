"""How this process was started: by itself, or by an MPI launcher as one of several ranks.

Launchers tell each process in its environment which rank it is, so that nothing of MPI need be imported to know
that there is none. Each rank that was launched gets a watcher: a small process that says why its rank has gone
when the rank cannot say it any more, as after SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

_LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE"),  # MPICH and its kin, Slurm with PMI-2
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_NTASKS"),
)
_WATCHER = Path(__file__).with_name("watcher.py")
_DIE_WITH_PARENT = 1  # prctl's PR_SET_PDEATHSIG


class Launch(NamedTuple):
    """What the launcher said: which of how many ranks; 0 where it did not say how many."""

    rank: int
    size: int


def launched() -> Launch | None:
    """What a launcher said of this process; None where there was none, or where it started this rank alone."""
    for rank, size in _LAUNCHERS:
        if os.environ.get(rank, "").isdecimal():
            said = os.environ.get(size, "")
            launch = Launch(int(os.environ[rank]), int(said) if said.isdecimal() else 0)
            return None if launch.size == 1 else launch
    return None


def no_more() -> None:
    """Take the launcher's words away, so that no process that this one starts believes to be a rank."""
    for rank, _ in _LAUNCHERS:
        os.environ.pop(rank, None)


class _Line:
    """From a rank to its watcher: how far the rank has come, a byte for each step."""

    ARRIVED, STARTED, SPOKEN = b"a", b"s", b"e"
    end: int | None = None

    def tell(self, step: bytes) -> None:
        """Say that this step was taken; without a watcher, nothing."""
        if self.end is not None:
            os.write(self.end, step)


line = _Line()


def watch(launch: Launch) -> None:
    """Split this process: what goes on is a child, and what the launcher knows becomes its watcher."""
    if line.end is not None or "mpi4py.MPI" in sys.modules or not hasattr(os, "fork"):
        return  # already done; or too late, as what MPI has opened cannot be split
    import warnings

    reads, writes = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads: BLAS's, which it ends before a fork
        child = os.fork()
    if child:
        os.set_inheritable(reads, True)
        words = [sys.executable, "-I", "-S", str(_WATCHER), str(child), str(reads), str(launch.rank), str(launch.size)]
        os.execv(sys.executable, words)
    os.close(reads)
    os.setpgid(0, 0)  # signals come from the watcher, which gets them from the launcher
    line.end = writes
    _die_with(os.getppid())


def _die_with(watcher: int) -> None:
    """End when the watcher does, which is what a launcher ends."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != watcher:
            os._exit(1)
    else:
        import threading

        threading.Thread(target=_end_after, args=(watcher,), daemon=True).start()


def _end_after(watcher: int) -> None:
    while os.getppid() == watcher:
        time.sleep(0.5)
    os._exit(1)
