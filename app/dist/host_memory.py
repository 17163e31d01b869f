"""Collectives among the ranks of one host, through memory that all of them see: in half the time of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

CHUNK = 1 << 20
"""Bytes of each rank that are there at a time: few enough to stay in the caches of its core."""

LARGE = 1 << 16
"""So many bytes are worth the ranks' meeting twice."""


def shared_by(communicator: Any, mpi: Any) -> HostMemory | None:
    """Memory of all ranks, if they are on one host whose MPI can share it."""
    here = communicator.Split_type(mpi.COMM_TYPE_SHARED)
    everybody = here.size == communicator.size
    here.Free()
    if not everybody:
        return None
    try:
        return HostMemory(mpi.Win.Allocate_shared(2 * CHUNK, 1, comm=communicator), communicator)
    except mpi.Exception:
        return None


Meet = Callable[[], None]
"""What waits until every rank has called it."""


class HostMemory:
    """Two places for each rank, used in turn: a rank may still read the one when another fills the next."""

    def __init__(self, window: Any, communicator: Any):
        self._window, self.rank, self.size = window, communicator.rank, communicator.size
        window.Lock_all()
        shared = [np.frombuffer(window.Shared_query(rank)[0], np.uint8) for rank in range(self.size)]
        self._places = [[memory[turn * CHUNK : (turn + 1) * CHUNK] for memory in shared] for turn in (0, 1)]
        self._turn = 0

    def add_up(self, numbers: np.ndarray, meet: Meet) -> None:
        """Replace each rank's numbers by the sums over all.

        Each sum is made by one rank, and the others copy it, so that all have the same bits.
        """
        for piece, places in self._pieces(numbers):
            ends = [piece.size * rank // self.size for rank in range(self.size + 1)]
            parts = [slice(a, b) for a, b in zip(ends, ends[1:], strict=False)]
            mine, here = parts[self.rank], places[self.rank]
            others = [(part, place) for part, place in zip(parts, places, strict=True) if place is not here]
            for part, _ in others:
                here[part] = piece[part]
            self._met(meet)
            for _, place in others:
                piece[mine] += place[mine]
            here[mine] = piece[mine]
            self._met(meet)
            for part, place in others:
                piece[part] = place[part]

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
