"""Threads that prepare batches in advance, in the same order as without threads."""

from __future__ import annotations

import copy
import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_here = threading.local()
_END = object()


@dataclass(frozen=True)
class WorkerInfo:
    """The number of the worker that reads a data set, and how many workers there are."""

    id: int
    num_workers: int
    dataset: Any
    seed: int = 0


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo of this thread; None outside of workers."""
    return getattr(_here, "info", None)


@dataclass(frozen=True)
class _Failure:
    error: BaseException


class _Worker:
    """A thread that fills a bounded queue from an iterator."""

    def __init__(self, info: WorkerInfo, work: Callable[[Any], Iterator[Any]], ahead: int, start: Any):
        self.results: queue.Queue[Any] = queue.Queue(max(ahead, 1))
        self._stopped = threading.Event()
        self._arguments = (info, work, start)
        self._thread = threading.Thread(target=self._run, name=f"worker {info.id}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        info, work, start = self._arguments
        _here.info = info
        try:
            if start is not None:
                start(info.id)
            for batch in work(info.dataset):
                if not self._put(batch):
                    return
            self._put(_END)
        except BaseException as error:
            self._put(_Failure(error))

    def _put(self, item: Any) -> bool:
        while not self._stopped.is_set():
            try:
                self.results.put(item, timeout=0.05)
                return True
            except queue.Full:
                continue
        return False

    def get(self, timeout: float) -> Any:
        """The next batch, or the end marker; an error of the worker is raised here."""
        try:
            item = self.results.get(timeout=timeout or None)
        except queue.Empty:
            raise TimeoutError(f"{self._thread.name} of a DataLoader gave no batch within {timeout} seconds") from None
        if isinstance(item, _Failure):
            raise item.error
        return item

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()


def from_workers(
    dataset: Any,
    works: Iterable[Callable[[Any], Iterator[Any]]],
    ahead: int,
    timeout: float = 0,
    start: Callable[[int], Any] | None = None,
    own: bool = False,
) -> Iterator[Any]:
    """Items of several iterators in turn, each of which runs in a thread of its own.

    With `own`, each has a copy of the data set.
    """
    listed = list(works)
    workers = [
        _Worker(WorkerInfo(i, len(listed), copy.copy(dataset) if own else dataset, i), work, ahead, start)
        for i, work in enumerate(listed)
    ]
    running = dict(enumerate(workers))
    try:
        for turn in itertools.cycle(range(len(workers))):
            if not running:
                return
            if turn in running:
                batch = running[turn].get(timeout)
                if batch is _END:
                    del running[turn]
                else:
                    yield batch
    finally:
        for worker in workers:
            worker.stop()
