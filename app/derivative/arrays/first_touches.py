"""Spares the zeros that arrays of a derived function begin with.

An element that nothing touched before is zero, so that the first sum is an assignment. An array of which each element
is first assigned is made without values.
"""

from __future__ import annotations

import ast

from app.derivative.arrays.core import (
    Alloc,
    Copied,
    For,
    Function,
    Stmt,
    Store,
    blocks_of,
    has_break,
    names_of,
    plus,
    same,
    shape_of,
    walk,
)
from app.derivative.arrays.dependence import Dependence, accesses
from app.derivative.terms import number_in


def first_touched(block: list[Stmt], function: Function) -> list[Stmt]:
    """The block with an assignment in place of the first sum into each element of an array."""
    dependence = Dependence(function.with_body(block))
    for array in [s.name for s in walk(block) if isinstance(s, (Alloc, Copied))]:
        _FirstTouches(block, array, dependence).spare()
    return block


class _FirstTouches:
    """The accesses of one array, and which of them are the first ones of their elements."""

    def __init__(self, block: list[Stmt], array: str, dependence: Dependence):
        self._block, self._array, self._dependence = block, array, dependence
        self._stores = [s for s in walk(block) if isinstance(s, Store) and s.array == array]

    def spare(self) -> None:
        array, dependence = self._array, self._dependence
        makers = [s for s in walk(self._block) if isinstance(s, (Alloc, Copied)) and s.name == array]
        maker = makers[0]
        zeros = maker.kind == "zeros" if isinstance(maker, Alloc) else maker.function == "zeros_like"
        touches = accesses(array, self._block, dependence) if zeros and len(makers) == 1 else None
        if touches is None:
            return
        self._accesses, self._home = touches, dependence.place(maker).loops
        if any(each.place.counted or each.place.loops[: len(self._home)] != self._home for each in touches):
            return
        for store in [s for s in self._stores if s.add and self._is_first(s)]:
            store.add = False
        if any(self._covers(store, maker) and self._is_first(store) for store in self._stores):
            if isinstance(maker, Alloc):
                maker.kind = "empty"
            else:
                maker.function = "empty_like"

    def _is_first(self, store: Store) -> bool:
        """Whether nothing touches an element before it is stored there, and this happens once."""
        if any(isinstance(part, ast.Slice) for part in store.index):
            return False
        own = next(each for each in self._accesses if each.is_write and each.index is store.index)
        inner = own.place.loops[len(self._home) :]
        if any(self._dependence.touches_in_other(own, own, loop) for loop in inner):
            return False
        others = [each for each in self._accesses if each is not own]
        return not any(self._dependence.touches_later(each, own, self._home) for each in others)

    def _covers(self, store: Store, maker: Alloc | Copied) -> bool:
        """Whether a store assigns each element of an array."""
        if store.add or store.array in names_of(store.value):
            return False
        block = _block_of(self._block, maker) or []
        loops: list[For] = []
        while store not in block:
            inner = [s for s in block if isinstance(s, For) and any(each is store for each in walk([s]))]
            if not inner or has_break(inner[0].body):
                return False
            loops.append(inner[0])
            block = inner[0].body
        texts = [part.id if isinstance(part, ast.Name) else "" for part in store.index]
        if len(texts) != len(loops) or {loop.var for loop in loops} != set(texts):
            return False
        for axis, text in enumerate(texts):
            loop = next(each for each in loops if each.var == text)
            low, high = (loop.start, loop.stop) if loop.step > 0 else (plus(loop.stop, 1), plus(loop.start, 1))
            size = maker.shape[axis] if isinstance(maker, Alloc) else shape_of(maker.source, axis)
            place = self._dependence.place(loop)
            if abs(loop.step) != 1 or number_in(low) != 0:
                return False
            evident = same(high, size) and not names_of(size)
            if not evident and self._dependence.offset(high, size, place) != 0:
                return False
        return True


def _block_of(block: list[Stmt], statement: Stmt) -> list[Stmt] | None:
    """The block that a statement stands in."""
    if any(s is statement for s in block):
        return block
    inner = (_block_of(b, statement) for s in block for b in blocks_of(s))
    return next((each for each in inner if each is not None), None)
