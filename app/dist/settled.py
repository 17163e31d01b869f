"""Values of a scope that live where all processes of a host see them: what processes exchange is copied once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

import numpy as np

from app.graph.scope import Scope

Rooms = Callable[[Sequence[np.ndarray]], list[np.ndarray] | None]
"""Gives arrays such as some, in memory that all see; None, if there is no such memory. All processes call it alike."""


class Settled:
    """Room for the values of one scope at a time."""

    def __init__(self, rooms: Rooms) -> None:
        self._give = rooms
        self._rooms: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
        self._lives: Callable[[], Scope | None] = lambda: None
        self._here: dict[str, np.ndarray] = {}

    def settle(self, names: Sequence[str], scope: Scope) -> None:
        """Move values to where all see them, and others out of there."""
        here = self._rooms_for(tuple(names), scope)
        if self._lives() is not scope or self._here is not here:
            self._move_out()
            self._lives, self._here = weakref.ref(scope), here
        for name, room in here.items():
            if scope.values[name] is not room:
                room[...] = scope.values[name]
                scope.values[name] = room

    def _rooms_for(self, names: tuple[str, ...], scope: Scope) -> dict[str, np.ndarray]:
        if names not in self._rooms:
            rooms = self._give([scope.values[name] for name in names]) if names else None
            self._rooms[names] = dict(zip(names, rooms, strict=True)) if rooms else {}
        return self._rooms[names]

    def _move_out(self) -> None:
        """Give a scope that has to make room arrays of its own."""
        before = self._lives()
        for name, room in self._here.items():
            if before is not None and before.values.get(name) is room:
                before.values[name] = room.copy()
