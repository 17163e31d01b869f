"""The world of ranks of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.ranks.launch import launched
from app.ranks.world import World

_current: World | None = None


def current() -> World:
    """The world of this process. The first call connects to the other ranks."""
    global _current
    if _current is None:
        launch = launched()
        if launch is None:
            _current = World()
        else:
            from app.ranks.mpi import meet  # imported late: few processes need it

            _current = meet(launch)
    return _current


def entered() -> World | None:
    """The world of this process, if it is connected."""
    return _current


def place() -> tuple[int, int]:
    """The rank of this process and the number of ranks, known before they are connected."""
    if _current is not None:
        return _current.rank, _current.size
    launch = launched()
    return (launch.rank, max(1, launch.size)) if launch else (0, 1)


@contextmanager
def using(world: World | None) -> Iterator[World | None]:
    """A block with another world; with None, the world is determined again."""
    global _current
    before, _current = _current, world
    try:
        yield world
    finally:
        _current = before
