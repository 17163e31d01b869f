"""Parameters that are averaged over the ranks live where all ranks of the host see them: no collective copies them."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import numpy as np

from app.dist import world
from app.dist.operators import average
from app.engine import Scope
from app.graph.program import Program


class Settled:
    """Room for the parameters of one scope at a time."""

    def __init__(self) -> None:
        self._rooms: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
        self._lives: Callable[[], Scope | None] = lambda: None
        self._here: dict[str, np.ndarray] = {}

    def settle(self, program: Program, scope: Scope) -> None:
        """Move what a Program averages, and what is large enough, to where collectives need no copies of it."""
        here = self._rooms_for(program, scope)
        if self._lives() is not scope or self._here is not here:
            self._move_out()
            self._lives, self._here = weakref.ref(scope), here
        for name, room in here.items():
            if scope.values[name] is not room:
                room[...] = scope.values[name]
                scope.values[name] = room

    def _rooms_for(self, program: Program, scope: Scope) -> dict[str, np.ndarray]:
        names = _averaged(program, scope)
        if names not in self._rooms:
            rooms = world.current().rooms([scope.values[name] for name in names]) if names else None
            self._rooms[names] = dict(zip(names, rooms, strict=True)) if rooms else {}
        return self._rooms[names]

    def _move_out(self) -> None:
        """Give a scope that has to make room arrays of its own."""
        before = self._lives()
        for name, room in self._here.items():
            if before is not None and before.values.get(name) is room:
                before.values[name] = room.copy()


def _averaged(program: Program, scope: Scope) -> tuple[str, ...]:
    """The parameters that a Program averages, of which each travels by itself."""
    block = program.global_block()
    found = [
        name
        for op in block.ops
        if op.definition is average
        for name in filter(None, op.inputs)
        if block.var(name).persistable and scope.values[name].nbytes >= op.attributes["bucket"]
    ]
    return tuple(found)
