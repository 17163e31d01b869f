"""Who is told of every variable and operator that a statement of the same thread puts into a Program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.graph.program import Block, Operator
    from app.graph.variable import Variable

    Watcher = Callable[[Block, Variable | Operator], None]

_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())


def tell(block: Block, added: Variable | Operator) -> None:
    """Tell all that watch."""
    for watcher in _watchers.get():
        watcher(block, added)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell `watcher` inside the block."""
    _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.set(tuple(w for w in _watchers.get() if w is not watcher))
