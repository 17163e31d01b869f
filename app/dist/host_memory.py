"""Collectives among the ranks of one host, through memory that all of them see: in half the time of messages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

CHUNK = 1 << 20
"""Bytes of each rank that are there at a time: few enough to stay in the caches of its core."""

LARGE = 1 << 16
"""So many bytes are worth the ranks' meeting twice."""

BLOCK = 1 << 17
"""Bytes of each rank that are added up at a time where they lie: few enough to stay near while that is done."""

PAGE = 1 << 12

SPARE = 1 << 23
"""So many bytes of shared memory are left to others."""


def shared_by(communicator: Any, mpi: Any) -> HostMemory | None:
    """Memory of all ranks, if they are on one host whose MPI can share it."""
    here = communicator.Split_type(mpi.COMM_TYPE_SHARED)
    everybody = here.size == communicator.size
    here.Free()
    if not everybody:
        return None
    try:
        return HostMemory(lambda size: mpi.Win.Allocate_shared(size, 1, comm=communicator), communicator)
    except mpi.Exception:
        return None


def is_free(size: int) -> bool:
    """Whether so many bytes are left of the memory that processes can share: of what is not, writing is fatal."""
    try:
        left = os.statvfs("/dev/shm")
    except OSError:  # it is elsewhere, and nothing is known of it
        return True
    return size <= left.f_bavail * left.f_frsize - SPARE


Meet = Callable[[], None]
"""What waits until every rank has called it."""


class HostMemory:
    """Two places for each rank, used in turn: a rank may still read the one when another fills the next.

    What lies in one of the `rooms` is added up where it is, without these.
    """

    def __init__(self, allocate: Callable[[int], Any], communicator: Any):
        self._allocate, self.rank, self.size = allocate, communicator.rank, communicator.size
        self._window, memories = self._window_of(2 * CHUNK)
        shared = [np.frombuffer(memory, np.uint8) for memory in memories]
        self._places = [[memory[turn * CHUNK : (turn + 1) * CHUNK] for memory in shared] for turn in (0, 1)]
        self._turn = 0
        self._rooms: list[_Rooms] = []

    def _window_of(self, size: int) -> tuple[Any, list[Any]]:
        """So many bytes of each rank, which all see."""
        window = self._allocate(size)
        window.Lock_all()
        return window, [window.Shared_query(rank)[0] for rank in range(self.size)]

    def rooms(self, like: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Arrays such as these, which stay in memory that all ranks see. All ask for the same, in the same order."""
        ends = list(accumulate(-(-array.nbytes // PAGE) * PAGE for array in like))
        window, memories = self._window_of(ends[-1])
        self._rooms.append(_Rooms(window, [np.frombuffer(memory, np.uint8) for memory in memories], self.rank))
        starts = [0, *ends[:-1]]
        return [
            np.ndarray(array.shape, array.dtype, memories[self.rank], start)
            for array, start in zip(like, starts, strict=True)
        ]

    def add_up(self, numbers: np.ndarray, meet: Meet, mean: bool = False) -> None:
        """Replace each rank's numbers by the sums over all, or by their means.

        Each is made by one rank, and the others have copies, so that all have the same bits.
        """
        everywhere = next(filter(None, (rooms.everywhere(numbers) for rooms in self._rooms)), None)
        if everywhere is not None:
            self._add_up_there(everywhere, meet, mean)
            return
        for piece, places in self._pieces(numbers):
            parts = self._parts(piece.size)
            mine, here = parts[self.rank], places[self.rank]
            others = [(part, place) for part, place in zip(parts, places, strict=True) if place is not here]
            for part, _ in others:
                here[part] = piece[part]
            self._met(meet)
            for _, place in others:
                piece[mine] += place[mine]
            if mean:
                piece[mine] /= self.size
            here[mine] = piece[mine]
            self._met(meet)
            for part, place in others:
                piece[part] = place[part]

    def _add_up_there(self, everywhere: list[np.ndarray], meet: Meet, mean: bool) -> None:
        """The same, where the numbers of every rank lie."""
        part = self._parts(everywhere[0].size)[self.rank]
        each = BLOCK // everywhere[0].itemsize
        self._met(meet)
        for start in range(part.start, part.stop, each):
            block = slice(start, min(start + each, part.stop))
            total, *others = (everywhere[(self.rank + other) % self.size][block] for other in range(self.size))
            for other in others:
                total += other
            if mean:
                total /= self.size
            for other in others:
                other[:] = total
        self._met(meet)

    def _parts(self, count: int) -> list[slice]:
        """Which of so many numbers each rank adds up."""
        ends = [count * rank // self.size for rank in range(self.size + 1)]
        return [slice(a, b) for a, b in zip(ends, ends[1:], strict=False)]

    def add_up_at(self, root: int, numbers: np.ndarray, meet: Meet) -> None:
        """Replace the root's numbers by the sums over all ranks."""
        for piece, places in self._pieces(numbers):
            if self.rank != root:
                places[self.rank][:] = piece
            self._met(meet)
            if self.rank == root:
                for rank in (*range(root), *range(root + 1, self.size)):
                    piece += places[rank]

    def spread_from(self, root: int, numbers: np.ndarray, meet: Meet) -> None:
        """Replace each rank's numbers by those of the root."""
        for piece, places in self._pieces(numbers):
            if self.rank == root:
                places[root][:] = piece
            self._met(meet)
            if self.rank != root:
                piece[:] = places[root]

    def _pieces(self, numbers: np.ndarray) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
        """As many of the numbers as have room at a time, with a place of each rank for them."""
        each = CHUNK // numbers.itemsize
        for start in range(0, numbers.size, each):
            piece = numbers[start : start + each]
            yield piece, [place[: piece.nbytes].view(piece.dtype) for place in self._places[self._turn]]
            self._turn = 1 - self._turn

    def _met(self, meet: Meet) -> None:
        self._window.Sync()
        meet()
        self._window.Sync()


class _Rooms:
    """Memory of each rank for arrays that stay there."""

    def __init__(self, window: Any, memories: list[np.ndarray], rank: int):
        self._window, self._memories = window, memories  # the memory is there as long as the window is
        self._first, self._size = _address(memories[rank]), memories[rank].size

    def everywhere(self, numbers: np.ndarray) -> list[np.ndarray] | None:
        """What each rank has where these numbers lie; None, if that is elsewhere."""
        start = _address(numbers) - self._first
        if not 0 <= start < self._size:
            return None
        return [memory[start : start + numbers.nbytes].view(numbers.dtype) for memory in self._memories]


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
