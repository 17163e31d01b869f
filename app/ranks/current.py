"""Which world of ranks this process belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.ranks.launch import launched
from app.ranks.world import World

_current: World | None = None


def current() -> World:
    """The world of this process; the first call meets the other ranks."""
    global _current
    if _current is None:
        launch = launched()
        if launch is None:
            _current = World()
        else:
            from app.ranks.mpi import meet  # imported late, as few processes need it

            _current = meet(launch)
    return _current


def entered() -> World | None:
    """The world of this process, if it has met the other ranks."""
    return _current


def place() -> tuple[int, int]:
    """The rank of this process and the number of ranks, as far as is known before they have met."""
    if _current is not None:
        return _current.rank, _current.size
    launch = launched()
    return (launch.rank, max(1, launch.size)) if launch else (0, 1)


@contextmanager
def using(world: World | None) -> Iterator[World | None]:
    """Within the block, this is the world of the process; with None, it is looked for again."""
    global _current
    before, _current = _current, world
    try:
        yield world
    finally:
        _current = before
