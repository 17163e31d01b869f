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
    """Limit this rank's threads to its share; gives a line about all ranks, for a run's introduction."""
    host, cores = world.host, sorted(_cores())
    ranks = [set(theirs) for there, theirs in world.gather((host, cores)) if there == host]
    mine = max(1, int(sum(Fraction(1, sum(core in theirs for theirs in ranks)) for core in cores)))
    return _said(world.gather((host, len(cores), _limit("BLAS", BLAS, mine), _limit("Numba", NUMBA, mine))))


def _cores() -> set[int]:
    """The cores that this process may run on, which a launcher may have bound it to."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _limit(what: str, variables: tuple[str, ...], threads: int) -> str:
    """Limit one kind of threads, now and in what is loaded later; says to what."""
    set_by_user = [f"{name}={os.environ[name]}" for name in variables if os.environ.get(name)]
    if set_by_user:
        return f"{what} as {' '.join(set_by_user)} says"
    os.environ.update(dict.fromkeys(variables, str(threads)))
    if what == "BLAS":
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads, user_api="blas")
    elif "numba" in sys.modules:  # which has read the variable
        import numba

        with contextlib.suppress(RuntimeError):  # its threads are at work: the user has begun
            numba.config.reload_config()
    return f"{threads} for {what}"


def _said(ranks: list[tuple[str, int, str, str]]) -> str:
    """`Ranks: 4 on host a (2 cores); threads of each: 1 for BLAS, 1 for Numba`, for each kind of host and of rank."""
    hosts: dict[str, list[tuple[int, str, str]]] = {}
    for host, *rest in ranks:
        hosts.setdefault(host, []).append(tuple(rest))  # type: ignore[arg-type]
    lines = []
    for host, there in hosts.items():
        cores = max(cores for cores, *_ in there)
        threads = " or ".join(dict.fromkeys(f"{blas}, {numba}" for _, blas, numba in there))
        lines.append(f"{len(there)} on host {host} with {cores} core{'s' * (cores != 1)}; threads of each: {threads}")
    return "Ranks: " + "\n       ".join(lines)
