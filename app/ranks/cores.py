"""Each rank's share of the cores: as many threads as there would be cores if the ranks of a host divided them.

Two pools of threads that each use all cores wait for each other most of the time. Thread counts set in the environment
are respected.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
NUMBA = ("NUMBA_NUM_THREADS",)


def usable() -> set[int]:
    """The cores that this process may run on, which a launcher may have bound it to."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def share(of_ranks: Sequence[set[int]]) -> int:
    """The number of threads for this rank, from the cores that each rank of this host may use."""
    return max(1, min(len(usable()), len(set().union(*of_ranks)) // len(of_ranks)))


def limit(threads: int) -> str:
    """Limit the threads of this process, including libraries that are loaded later. Returns the limits."""
    return f"{_limit('BLAS', BLAS, threads)}, {_limit('Numba', NUMBA, threads)}"


def _limit(what: str, variables: tuple[str, ...], threads: int) -> str:
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
