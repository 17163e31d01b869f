"""Which world of ranks this process belongs to, and questions to all of them.

`current()` is that world. It follows from what the MPI launcher left in the environment;
where that is nothing, MPI is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.dist.errors import DistError, RankError
from app.dist.launch import launched
from app.dist.protocol import TIMEOUT, Alone, Reduction, World

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
