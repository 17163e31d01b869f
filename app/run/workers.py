"""Workers for the trainings of a comparison: local processes, MPI ranks, or any executor. A training whose worker dies
is retried once; if that fails too, its seed is excluded for all operators.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from app.errors import AppError, ConfigError
from app.ranks import cores
from app.ranks.current import using
from app.ranks.world import World

OpenExecutor = Callable[[], AbstractContextManager[Executor | None]]
"""Starts workers; the context manager shuts them down."""

T = TypeVar("T")
R = TypeVar("R")

_LOOK = 0.2
"""Seconds between two checks for a signal."""


def run_all(
    executor: Executor,
    work: Callable[[T], R],
    jobs: Sequence[T],
    done: Callable[[T, R], None],
    lost: Callable[[T, BaseException, bool], None],
    check: Callable[[], None],
) -> None:
    """Do all jobs on an executor's workers, and call `done` as each one completes. An AppError ends all jobs. For any
    other error, such as a dead worker, `lost` is called with whether the job will be retried. `check` is called
    periodically and may raise.
    """
    waiting = {executor.submit(work, job): (job, 1) for job in jobs}
    try:
        while waiting:
            ended, _ = wait(waiting, _LOOK, FIRST_COMPLETED)
            check()
            for future in ended:
                job, times = waiting.pop(future)
                try:
                    result = future.result()
                except AppError:
                    raise
                except Exception as error:
                    lost(job, error, times == 1)
                    if times == 1:
                        waiting[executor.submit(work, job)] = job, 2
                else:
                    done(job, result)
    finally:
        for future in waiting:
            future.cancel()


class Processes(Executor):
    """A pool of local processes. A process that dies loses only its own job.

    (The processes of one ProcessPoolExecutor end together when one of them dies.)
    """

    def __init__(self, count: int):
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="opsmith-worker")
        self._idle = [self._started() for _ in range(count)]
        self._all = list(self._idle)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in the next idle process."""
        return self._threads.submit(self._run, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes, immediately if `wait` is false."""
        if not wait:
            for pool in self._all:
                for process in list((pool._processes or {}).values()):
                    process.kill()
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for pool in self._all:
            pool.shutdown(wait)

    def __exit__(self, kind: Any, error: Any, at: Any) -> bool | None:
        self.shutdown(wait=error is None, cancel_futures=error is not None)
        return None

    def _started(self) -> ProcessPoolExecutor:
        spawn = multiprocessing.get_context("spawn")  # fork would copy locks held by threads of Numba and BLAS
        return ProcessPoolExecutor(1, spawn, _begin)

    def _run(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        pool = self._idle.pop()  # one per thread
        try:
            return pool.submit(fn, *args, **kwargs).result()
        except BrokenProcessPool:
            pool = self._started()
            self._all.append(pool)
            raise
        finally:
            self._idle.append(pool)


def _begin() -> None:
    """Initialise a worker before it imports NumPy or Numba."""
    for name in ("SIGINT", "SIGHUP"):  # a terminal sends them to all processes, and the parent handles them
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    cores.limit(1)


def _end_with_parent() -> None:
    """End this process when its parent has ended for any reason."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def executor_of(workers: str) -> OpenExecutor | None:
    """Return the executor for `--workers`: a number of processes, or mpi; None for this process alone."""
    if workers == "mpi":
        return ranks
    if not workers.isdecimal() or int(workers) < 1:
        raise ConfigError(f"--workers takes a number of processes of at least 1, or mpi; found {workers!r}")
    count = int(workers)
    return None if count == 1 else lambda: Processes(count)


@contextmanager
def ranks() -> Iterator[Executor | None]:
    """Yield the executor over all ranks on rank 0. The other ranks run jobs until rank 0 leaves the block; they yield
    None."""
    from mpi4py import MPI  # imported late: an optional dependency
    from mpi4py.futures import MPICommExecutor

    pool: Any = MPICommExecutor(MPI.COMM_WORLD, root=0)
    with using(World()), pool as executor:  # each training runs on one rank
        yield executor


def died(error: BaseException) -> str:
    """Return a short reason why a training was lost."""
    words = str(error).strip().partition("\n")[0]
    return "its worker died" if isinstance(error, BrokenProcessPool) else f"{type(error).__name__}: {words}"
