"""Workers for the trainings of a comparison: processes of this machine, ranks of MPI, or any executor of the caller's.

A training that is lost with its worker is run once more; if it is lost again, its seed counts for no operator.
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
"""Starts workers; the context manager ends them."""

T = TypeVar("T")
R = TypeVar("R")

_LOOK = 0.2
"""Seconds between two looks for a signal."""


def run_all(
    executor: Executor,
    work: Callable[[T], R],
    jobs: Sequence[T],
    done: Callable[[T, R], None],
    lost: Callable[[T, BaseException, bool], None],
    check: Callable[[], None],
) -> None:
    """Do all jobs on an executor's workers, and call `done` for each as it ends.

    An error of ours ends them all. For any other, such as a worker that died, `lost` is called, with whether the job is
    run once more. `check` is called now and then, and may raise.
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
    """So many processes of this machine. One that dies costs its own job alone.

    (The processes of one ProcessPoolExecutor end together when one of them dies.)
    """

    def __init__(self, count: int):
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="opsmith-worker")
        self._idle = [self._started() for _ in range(count)]
        self._all = list(self._idle)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in one of the processes, when one is idle."""
        return self._threads.submit(self._run, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes, at once if they are not to be waited for."""
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
        spawn = multiprocessing.get_context("spawn")  # a fork would copy locks that threads of Numba and BLAS hold
        return ProcessPoolExecutor(1, spawn, _begin)

    def _run(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        pool = self._idle.pop()  # there is one for each thread
        try:
            return pool.submit(fn, *args, **kwargs).result()
        except BrokenProcessPool:
            pool = self._started()
            self._all.append(pool)
            raise
        finally:
            self._idle.append(pool)


def _begin() -> None:
    """Begin a worker, before it loads NumPy or Numba."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    cores.limit(1)


def _end_with_parent() -> None:
    """End this process when the one that started it has ended, however it did."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def executor_of(workers: str) -> OpenExecutor | None:
    """The workers that `--workers` names: a number of processes, or mpi; None for this process alone."""
    if workers == "mpi":
        return ranks
    if not workers.isdecimal() or int(workers) < 1:
        raise ConfigError(f"--workers takes a number of processes of at least 1, or mpi; found {workers!r}")
    count = int(workers)
    return None if count == 1 else lambda: Processes(count)


@contextmanager
def ranks() -> Iterator[Executor | None]:
    """The executor of all ranks, at rank 0. The others work in the block until rank 0 leaves it, and have None."""
    from mpi4py import MPI  # imported late: an extra
    from mpi4py.futures import MPICommExecutor

    pool: Any = MPICommExecutor(MPI.COMM_WORLD, root=0)
    with using(World()), pool as executor:  # each training is of one rank
        yield executor


def died(error: BaseException) -> str:
    """Why a training was lost, in a few words."""
    words = str(error).strip().partition("\n")[0]
    return "its worker died" if isinstance(error, BrokenProcessPool) else f"{type(error).__name__}: {words}"
