"""Who is told of every variable and operator that a statement puts into a Program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.graph.program import Block, Operator
    from app.graph.variable import Variable

    Watcher = Callable[[Block, Variable | Operator], None]

_watchers: list[Watcher] = []


def tell(block: Block, added: Variable | Operator) -> None:
    """Tell all that watch."""
    for watcher in _watchers:
        watcher(block, added)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell `watcher` inside the block."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)
