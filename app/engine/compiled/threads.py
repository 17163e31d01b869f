"""The threads that share out a batch: how many it is worth, and threads that stay for the next one.

Starting a thread takes as long as a small batch does, and a batch may be run at every call.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.engine.compiled.steps import Lowered

FOR_EACH = 750_000
"""So many operations are worth a thread, which does some tens of them in a nanosecond: with two, from 9 rows on of the
network of seed.yaml, where one and two threads were measured to take as long with 8."""


def threads_worth(lowered: Lowered, n: int, most: int) -> int:
    """The number of threads, up to `most`, for batches of n rows: in a small one, meeting the others takes longer than
    doing their share.

    What a function that is called costs is not known: all threads are worth it.
    """
    if most == 1 or any(not (step.has_known_cost or step.is_alone) for step in lowered.steps):
        return most
    operations = sum(step.operations(n) for step in lowered.steps if not step.is_free)
    return min(most, max(1, operations // FOR_EACH))


Job = Callable[[int], None]


class _Worker:
    """A thread that does one job after the other."""

    def __init__(self) -> None:
        self._wanted, self._done = _thread.allocate_lock(), _thread.allocate_lock()
        self._wanted.acquire()
        self._done.acquire()
        self._job: tuple[Job, int] | None = None
        threading.Thread(target=self._work, name="opsmith", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._wanted.acquire()
            job, number = self._job  # type: ignore[misc]
            self._job = None
            try:
                job(number)
            finally:
                del job
                self._done.release()

    def start(self, job: Job, number: int) -> None:
        self._job = job, number
        self._wanted.release()

    def join(self) -> None:
        self._done.acquire()


_idle: list[_Worker] = []


def _taken() -> _Worker:
    try:
        return _idle.pop()
    except IndexError:  # another thread may have taken the last one just now, so asking first would not do
        return _Worker()


@contextmanager
def helping(job: Job, count: int) -> Iterator[None]:
    """Do a job on so many threads beside this one, with the numbers from 1 on; they are done at the end of the block.

    The job must not raise.
    """
    workers = [_taken() for _ in range(count)]
    try:
        for number, worker in enumerate(workers, 1):
            worker.start(job, number)
        yield
    finally:
        for worker in workers:
            worker.join()
        _idle.extend(workers)


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_idle.clear)
