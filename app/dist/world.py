"""The ranks that work together, and what passes between them: a world of one does nothing.

`current()` is the world that this process belongs to. It follows from what the MPI launcher left in the environment;
where that is nothing, MPI is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol

import numpy as np

from app.dist.errors import DistError, RankError
from app.dist.launch import launched

__all__ = [
    "TIMEOUT",
    "Alone",
    "DistError",
    "RankError",
    "Reduction",
    "World",
    "current",
    "entered",
    "greatest",
    "holds_anywhere",
    "place",
    "set_current",
    "using",
]

Reduction = Literal["sum", "avg", "prod", "max", "min"]

TIMEOUT = 120.0
"""Seconds that ranks wait for each other, unless told otherwise."""


class World(Protocol):
    """All ranks, seen by one of them. Every rank makes the same calls in the same order.

    Buffers are C-contiguous arrays that are changed in place. A sum has the same bits at every rank. A call waits
    for the other ranks until `timeout` has passed, and then raises a RankError that names who did not come.
    """

    rank: int
    size: int
    local_rank: int
    """The rank among those of this machine."""
    said: str
    """A line about the ranks and their shares of the cores, for a run's introduction; '' where there is one alone."""

    def name(self, rank: int) -> str:
        """What a message calls a rank."""

    def configure(self, timeout: float = TIMEOUT, latency: float = 0.0, bandwidth: float | None = None) -> None:
        """Set how long to wait, and what a simulated network adds: seconds a message, bytes a second."""

    def allreduce(self, buffer: np.ndarray, how: Reduction = "sum") -> None:
        """Replace each rank's numbers by the sum over all ranks, or another reduction."""

    def rooms(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Arrays such as these that `allreduce` need not copy, as all ranks see their memory; None, if they cannot."""

    def reduce(self, buffer: np.ndarray, root: int = 0) -> None:
        """Replace the root's numbers by the sum over all ranks; the others keep theirs."""

    def broadcast(self, buffer: np.ndarray, root: int = 0) -> None:
        """Replace each rank's numbers by those of the root."""

    def gather(self, value: Any) -> list[Any]:
        """What every rank has to say, in the order of ranks, at every rank: plain data, such as text and numbers."""

    def barrier(self) -> None:
        """Wait until every rank has come here."""


class Alone:
    """A world of one rank, in which nothing is to be done."""

    rank, size, local_rank, said = 0, 1, 0, ""

    def name(self, rank: int) -> str:
        return f"rank {rank}"

    def configure(self, timeout: float = TIMEOUT, latency: float = 0.0, bandwidth: float | None = None) -> None:
        pass

    def allreduce(self, buffer: np.ndarray, how: Reduction = "sum") -> None:
        pass

    def rooms(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        return None

    def reduce(self, buffer: np.ndarray, root: int = 0) -> None:
        pass

    def broadcast(self, buffer: np.ndarray, root: int = 0) -> None:
        pass

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def barrier(self) -> None:
        pass


_current: World | None = None


def current() -> World:
    """The world of this process, which it enters at the first call."""
    global _current
    if _current is None:
        launch = launched()
        if launch is None:
            _current = Alone()
        else:
            from app.dist.mpi import enter

            _current = enter(launch)
    return _current


def entered() -> World | None:
    """The world of this process, if it has entered one."""
    return _current


def place() -> tuple[int, int]:
    """The rank of this process, and the number of ranks, as far as is known before they have met."""
    if _current is not None:
        return _current.rank, _current.size
    launch = launched()
    return (launch.rank, max(1, launch.size)) if launch else (0, 1)


def set_current(world: World | None) -> None:
    """Make this the world of the process; None has it looked for again."""
    global _current
    _current = world


@contextmanager
def using(world: World) -> Iterator[World]:
    """Within the block, this is the world of the process."""
    before = _current
    set_current(world)
    try:
        yield world
    finally:
        set_current(before)


def holds_anywhere(world: World, flag: bool) -> bool:
    """Whether something holds at one rank at least, which every rank then knows."""
    return greatest(world, float(flag)) > 0


def greatest(world: World, number: float) -> float:
    """The greatest of the ranks' numbers."""
    return float(max(world.gather(number)))
