"""Each rank's share of the cores: as many threads as there would be cores if the ranks of a machine divided them.

Two pools of threads that each believe to have the machine for themselves wait for each other most of the time.
Whoever has set a number of threads in the environment is taken at his word.
"""

from __future__ import annotations

import contextlib
import os
import sys
from fractions import Fraction
from typing import Any

BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
NUMBA = ("NUMBA_NUM_THREADS",)


def share(world: Any) -> str:
    """Limit this rank's threads to its share. Returns a line about all ranks for the first lines of a run."""
    host, cores = world.host, sorted(_cores())
    ranks = [set(theirs) for there, theirs in world.gather((host, cores)) if there == host]
    mine = max(1, int(sum(Fraction(1, sum(core in theirs for theirs in ranks)) for core in cores)))
    return _said(world.gather((host, os.getpid(), len(cores), limit(mine))))


def limit(threads: int) -> str:
    """Limit the threads of this process, including libraries that are loaded later. Returns the limits."""
    return f"{_limit('BLAS', BLAS, threads)}, {_limit('Numba', NUMBA, threads)}"


def _cores() -> set[int]:
    """The cores that this process may run on, which a launcher may have bound it to."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _limit(what: str, variables: tuple[str, ...], threads: int) -> str:
    """Limit one kind of threads, including libraries that are loaded later. Returns the limit."""
    set_by_user = [f"{name}={os.environ[name]}" for name in variables if os.environ.get(name)]
    if set_by_user:
        return f"{what} as {' '.join(set_by_user)} says"
    os.environ.update(dict.fromkeys(variables, str(threads)))
    if what == "BLAS":
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads, user_api="blas")
    elif "numba" in sys.modules:  # which has read the variable
        import numba

        with contextlib.suppress(RuntimeError):  # its threads are running: the user's program has begun
            numba.config.reload_config()
    return f"{threads} for {what}"


def _said(ranks: list[tuple[str, int, int, str]]) -> str:
    """A line for each host: `Ranks: 2 on host a with 2 cores, processes 4711 4712; threads of each: 1 for BLAS, ...`.

    mpiexec names a killed rank by its process.
    """
    lines = []
    for host in dict.fromkeys(there for there, *_ in ranks):
        _, processes, cores, threads = zip(*(rank for rank in ranks if rank[0] == host), strict=True)
        of_host = f"{len(processes)} on host {host} with {max(cores)} core{'s' * (max(cores) != 1)}"
        named = " ".join(map(str, processes))
        lines.append(f"{of_host}, processes {named}; threads of each: {' or '.join(dict.fromkeys(threads))}")
    return "Ranks: " + "\n       ".join(lines)
