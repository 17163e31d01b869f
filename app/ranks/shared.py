"""Arrays of all ranks of a host in shared memory, averaged without copies.

This pays: between two ranks, the mean of 3.2 MB takes 0.2 ms here and 0.5 ms with MPI's Iallreduce, of an iteration of
2.4 ms.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

BLOCK = 1 << 17
"""Bytes per rank that are averaged at a time, few enough for the cache."""
PAGE = 1 << 12
SPARE = 1 << 23
"""Bytes of shared memory that are left free."""


def shared_arrays(
    like: Sequence[np.ndarray], communicator: Any, mpi: Any, agreed: Callable[[bool], bool]
) -> SharedArrays | None:
    """Allocate such arrays on every rank; None if the ranks are on several hosts, or without shared memory."""
    here = communicator.Split_type(mpi.COMM_TYPE_SHARED)
    one_host = here.size == communicator.size
    here.Free()
    ends = list(accumulate(-(-array.nbytes // PAGE) * PAGE for array in like))
    if not like or not agreed(one_host and is_free(communicator.size * ends[-1])):
        return None
    try:
        window = mpi.Win.Allocate_shared(ends[-1], 1, comm=communicator)
    except mpi.Exception:
        return None
    window.Lock_all()
    memories = [window.Shared_query(rank)[0] for rank in range(communicator.size)]
    return SharedArrays(like, [0, *ends[:-1]], memories, communicator.rank, window)


def is_free(size: int) -> bool:
    """Whether this many bytes of shared memory are free: writing more kills a process."""
    try:
        left = os.statvfs("/dev/shm")
    except OSError:  # not at the usual place, so unknown
        return True
    return size <= left.f_bavail * left.f_frsize - SPARE


class SharedArrays:
    """The shared arrays of all ranks."""

    def __init__(self, like: Sequence[np.ndarray], starts: Sequence[int], memories: list[Any], rank: int, window: Any):
        self._memories = [np.frombuffer(memory, np.uint8) for memory in memories]
        self._rank, self._window = rank, window
        self._first, self._size = _address(self._memories[rank]), self._memories[rank].size
        self.arrays = [
            np.ndarray(array.shape, array.dtype, memories[rank], start)
            for array, start in zip(like, starts, strict=True)
        ]

    def holds(self, numbers: np.ndarray) -> bool:
        """Whether an array is in this shared memory."""
        return 0 <= _address(numbers) - self._first < self._size

    def average(self, numbers: np.ndarray, meet: Callable[[], None]) -> None:
        """Replace arrays by their means over the ranks. Each rank computes a part; `meet` is a barrier."""
        start, ranks = _address(numbers) - self._first, len(self._memories)
        everywhere = [memory[start : start + numbers.nbytes].view(numbers.dtype) for memory in self._memories]
        first, last = (numbers.size * rank // ranks for rank in (self._rank, self._rank + 1))
        each = BLOCK // numbers.itemsize
        self._met(meet)
        for at in range(first, last, each):
            block = slice(at, min(at + each, last))
            total, *others = (everywhere[(self._rank + other) % ranks][block] for other in range(ranks))
            for other in others:
                total += other
            total /= ranks
            for other in others:
                other[:] = total
        self._met(meet)

    def _met(self, meet: Callable[[], None]) -> None:
        self._window.Sync()
        meet()
        self._window.Sync()


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
