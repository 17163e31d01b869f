"""Makes arrays of a derived function smaller, and spares what is done to them: zeros, copies, sums in memory.

An element that nothing touched before has its initial value, so that the first sum is an assignment. An array of which
each iteration uses its own part has the size of one part; if that is one element, it is a number.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from functools import partial

from app.custom.derivative.arrays.core import (
    Alloc,
    Assign,
    Copied,
    Expr,
    For,
    Function,
    If,
    Stmt,
    Store,
    While,
    blocks_of,
    element_of,
    has_break,
    is_product,
    is_whole,
    load,
    names_of,
    parts_in,
    parts_of,
    plus,
    remembered,
    same,
    shape_of,
    stored_in,
    text_of,
    transformed,
    walk,
)
from app.custom.derivative.arrays.dependence import Access, Dependence, accesses
from app.custom.derivative.arrays.pushing import function_of
from app.custom.derivative.slopes import EXTREMES, FLAT, KNOWN
from app.custom.derivative.terms import number_in, with_parts

_CHOOSING = {"sign", "copysign", "remainder", "abs", "absolute", "fabs", "clip"}
SMOOTH = {f for f, row in KNOWN.items() if row not in EXTREMES and row not in _CHOOSING} - FLAT
"""Functions whose results change as little as their arguments do."""

# First touches


def first_touched(block: list[Stmt], function: Function) -> list[Stmt]:
    """The block with the initial value of an array, zero or that of a copied one, used where it is needed."""
    dependence = Dependence(function.with_body(block))
    for array in [s.name for s in walk(block) if isinstance(s, (Alloc, Copied))]:
        if _FirstTouches(block, array, dependence).spare():
            dependence = Dependence(function.with_body(block))
    return block


class _FirstTouches:
    """The accesses of one array, and which of them are the first ones of their elements."""

    def __init__(self, block: list[Stmt], array: str, dependence: Dependence):
        self._block, self._array, self._dependence = block, array, dependence
        self._stores = [s for s in walk(block) if isinstance(s, Store) and s.array == array]

    def spare(self) -> bool:
        """Spare what can be spared; gives whether the statements of the block are others now."""
        array, dependence = self._array, self._dependence
        makers = [s for s in walk(self._block) if isinstance(s, (Alloc, Copied)) and s.name == array]
        found = accesses(array, self._block, dependence)
        if len(makers) > 1 or found is None:
            return False
        maker = makers[0]
        self._accesses, self._home = found, dependence.place(maker).loops
        if any(each.place.counted or each.place.loops[: len(self._home)] != self._home for each in found):
            return False
        if isinstance(maker, Copied) and maker.function == "copy":
            return self._without_copy(maker)
        if maker.kind == "zeros" if isinstance(maker, Alloc) else maker.function == "zeros_like":
            firsts = [s for s in self._stores if s.add and self._is_first(self._access_of(s), s.index)]
            firsts += [s for s in self._stores if s.add and self._is_whole_first(s, maker)]
            for store in firsts:
                store.add = False
            self._empty(maker)
        return False

    def _access_of(self, store: Store) -> Access:
        return next(each for each in self._accesses if each.written and each.index is store.index)

    def _is_first(self, access: Access, index: Sequence[Expr], besides: Sequence[Access] = ()) -> bool:
        """Whether nothing touches an element before this access does, and this does so once."""
        if any(isinstance(part, ast.Slice) for part in index):
            return False
        dependence = self._dependence
        inner = access.place.loops[len(self._home) :]
        if any(dependence.touches_in_other(access, access, loop) for loop in inner):
            return False
        others = [each for each in self._accesses if each is not access and each not in besides]
        return not any(dependence.touches_later(each, access, self._home) for each in others)

    def _is_whole_first(self, store: Store, maker: Alloc | Copied) -> bool:
        """Whether a whole array is the first thing that is added to another one."""
        if not is_whole(store.index) or is_product(store.value) or store not in (_block_of(self._block, maker) or []):
            return False
        own = self._access_of(store)
        return all(each is own or each.place.order > own.place.order for each in self._accesses)

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

    def _empty(self, maker: Alloc | Copied, besides: Sequence[Access] = ()) -> bool:
        """Make an array without values, if all its elements get theirs before they are read."""
        for store in self._stores:
            whole = not store.add and self._is_whole_first(store, maker)
            covers = not whole and self._covers(store, maker)
            if whole or (covers and self._is_first(self._access_of(store), store.index, besides)):
                if isinstance(maker, Alloc):
                    maker.kind = "empty"
                else:
                    maker.function = "empty_like"
                return True
        return False

    def _without_copy(self, maker: Copied) -> bool:
        """Read the copied array itself where its copy has not changed yet, if the copy is not needed then."""
        if maker.source in stored_in(self._block):
            return False
        reads = [each for each in self._accesses if not each.written]
        early = [each for each in reads if not any(self._may_change(write, each) for write in self._writes())]
        sections = any(isinstance(part, ast.Slice) for each in early for part in each.index)
        if sections or not early:
            return False
        only_copied = len(early) == len(reads) and not any(s.add for s in self._stores)
        if not only_copied and not self._empty(maker, early):
            return False
        places = {(each.place.order, _text(each.index)) for each in early}
        self._block[:] = self._reading(self._block, maker.source, places)
        return True

    def _writes(self) -> list[Access]:
        return [each for each in self._accesses if each.written]

    def _may_change(self, write: Access, read: Access) -> bool:
        return self._dependence.touches_later(write, read, self._home)

    def _reading(self, block: Sequence[Stmt], source: str, early: set[tuple[int, str]]) -> list[Stmt]:
        """A block that reads the source of a copy at some of the places and indices."""
        result = []
        for statement in block:
            blocks = [self._reading(b, source, early) for b in blocks_of(statement)]
            order = self._dependence.place(statement).order
            of = partial(self._reading_in, source, {text for place, text in early if place == order})
            result.append(transformed(statement, blocks, of))
        return result

    def _reading_in(self, source: str, indices: set[str], node: Expr) -> Expr:
        """An expression that reads another array at some of the indices."""
        element = element_of(node)
        if element is not None and element[0] == self._array and _text(element[1]) in indices:
            return load(source, element[1])
        return with_parts(node, partial(self._reading_in, source, indices)) if indices else node


def _text(index: Sequence[Expr]) -> str:
    return ", ".join(map(text_of, index))


def _block_of(block: list[Stmt], wanted: Stmt) -> list[Stmt] | None:
    """The block that a statement stands in."""
    if any(s is wanted for s in block):
        return block
    inner = (_block_of(b, wanted) for s in block for b in blocks_of(s))
    return next((each for each in inner if each is not None), None)


# Influence


def without_influence(block: Sequence[Stmt]) -> set[str]:
    """The numbers and arrays that decide nothing: no test, index or rounded number depends on their values.

    Only these may be rounded in another way than where the function itself computes them.
    """
    deciding: set[str] = set()
    edges: list[tuple[str, Collection[str]]] = []
    for statement in walk(block):
        if isinstance(statement, (If, While, For)):
            deciding |= {key for part in parts_of(statement) for key in names_of(part)}
        if isinstance(statement, Store):
            deciding |= {key for part in statement.index for key in names_of(part)}
        for part in parts_of(statement):
            deciding |= _deciding_in(part)
        if isinstance(statement, Assign):
            edges.append((statement.name, names_of(statement.value)))
        elif isinstance(statement, Store):
            edges.append((statement.array, names_of(statement.value)))
        elif isinstance(statement, Copied):
            edges.append((statement.name, {statement.source}))
    while True:
        more = {key for target, sources in edges if target in deciding for key in sources} - deciding
        if not more:
            break
        deciding |= more
    return {target for target, _ in edges} - deciding


@remembered
def _deciding_in(node: ast.AST) -> frozenset[str]:
    rounding = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod))
    jumping = isinstance(node, ast.Call) and function_of(node.func) not in SMOOTH
    if rounding or jumping or isinstance(node, (ast.Compare, ast.BoolOp)):
        return names_of(node)
    if isinstance(node, ast.Subscript):
        return names_of(node.slice) | _deciding_in(node.value)
    return frozenset().union(*map(_deciding_in, parts_in(node)))
