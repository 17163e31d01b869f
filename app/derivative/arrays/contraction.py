"""Makes arrays of a derived function smaller.

An array of which each iteration of a loop uses its own part has the size of one part, such as a row. If that is one
element, it is a number.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from app.derivative.arrays.core import (
    Alloc,
    Assign,
    Copied,
    Expr,
    For,
    Stmt,
    Store,
    Variable,
    allocated_in,
    binary,
    blocks_of,
    element_of,
    load,
    loads_of,
    mapped,
    named_in,
    names_of,
    parts_of,
    plus,
    shape_of,
    stored_in,
    transformed,
    walk,
)
from app.derivative.arrays.effects import Effects
from app.derivative.terms import name, number, number_in, with_parts


def contracted(
    block: Sequence[Stmt], results: Collection[str], variables: dict[str, Variable], free: Collection[str]
) -> list[Stmt]:
    """The block with smaller arrays; `free` are arrays that may be rounded in another way, as numbers are."""
    root = list(block)
    pending = [root]
    while pending:
        inner = pending.pop()
        for maker in list(inner):
            if isinstance(maker, (Alloc, Copied)) and maker.name not in results and _is_plain(maker, root):
                _Contraction(root, inner, maker, variables, free).contract()
        pending += [each for statement in inner for each in blocks_of(statement)]
    return root


def _is_plain(maker: Alloc | Copied, root: Sequence[Stmt]) -> bool:
    """Whether an array has no values at first, zeros, or those of something that does not change."""
    if sum(isinstance(s, (Alloc, Copied)) and s.name == maker.name for s in walk(root)) > 1:
        return False
    if isinstance(maker, Alloc):
        return maker.kind in ("empty", "zeros")
    return maker.function != "copy" or maker.source not in stored_in(root) | allocated_in(root)


def _first_value(maker: Alloc | Copied, row: Sequence[Expr]) -> Expr | None:
    """The value of an array, or of a part of one, before anything is stored."""
    if isinstance(maker, Copied) and maker.function == "copy":
        return load(maker.source, row)
    is_zero = maker.kind == "zeros" if isinstance(maker, Alloc) else maker.function == "zeros_like"
    return number(0.0) if is_zero else None


class _Contraction:
    """Makes one array smaller."""

    def __init__(
        self,
        root: list[Stmt],
        block: list[Stmt],
        maker: Alloc | Copied,
        variables: dict[str, Variable],
        free: Collection[str],
    ):
        self._root, self._block, self._maker, self._variables, self._free = root, block, maker, variables, free
        self._array = maker.name

    def contract(self) -> None:
        users = [s for s in self._block if s is not self._maker and self._array in Effects([s]).named]
        if len(users) != 1 or not isinstance(users[0], For):
            return
        inside, own = (sum(self._array in named_in(s) for s in walk(block)) for block in (self._root, users))
        axis = self._own_axis(users[0]) if inside == own + 1 else None
        if axis is not None:
            self._contract(users[0], axis)

    def _own_axis(self, loop: For) -> int | None:
        """The axis along which each iteration uses its own part."""
        array = self._array
        parts = [part for s in walk([loop]) for part in parts_of(s)]
        loads = [index for part in parts for text, index in loads_of(part) if text == array]
        bare = sum(isinstance(n, ast.Name) and n.id == array for part in parts for n in ast.walk(part))
        copied = any(isinstance(s, Copied) and s.source == array for s in walk([loop]))
        low = number_in(loop.start if loop.step > 0 else plus(loop.stop, 1))
        rebound = any(isinstance(s, For) and s.var == loop.var for s in walk(loop.body))
        if bare > len(loads) or copied or rebound or low is None or low < 0:
            return None
        places = [*loads, *(s.index for s in walk([loop]) if isinstance(s, Store) and s.array == array)]
        own = (k for k in range(len(places[0])) if all(_is_variable(i[k], loop.var) for i in places))
        return next(own, None)

    def _contract(self, loop: For, axis: int) -> None:
        maker, array = self._maker, self._array
        rank = self._variables[array].rank
        rest = [k for k in range(rank) if k != axis]
        if not rest and array not in self._free:
            return
        start: list[Stmt] = []
        row: list[Expr] = [name(loop.var) if k == axis else ast.Slice() for k in range(rank)]
        value = _first_value(maker, row)
        if value is not None:
            whole = tuple(ast.Slice() for _ in rest)
            start = [Store(array, whole, value, False, loop.line) if rest else Assign(array, value, loop.line)]
        place, at = self._block.index(maker), self._block.index(loop)
        body = [_Contracting(array, axis, rank).statement(s) for s in loop.body]
        self._block[at] = mapped(loop, [[*start, *body]])
        if rest:
            sizes = [maker.shape[k] if isinstance(maker, Alloc) else shape_of(maker.source, k) for k in rest]
            dtype = maker.dtype if isinstance(maker, Alloc) else ast.Attribute(name(maker.source), "dtype", ast.Load())
            smaller = Alloc(array, "empty", tuple(sizes), dtype, None, maker.line)
            self._block[place] = smaller
        else:
            del self._block[place]
        old = self._variables[array]
        self._variables[array] = Variable(rank - 1, old.kind, old.dtype if rest else None)


def _is_variable(node: Expr, text: str) -> bool:
    return isinstance(node, ast.Name) and node.id == text


class _Contracting:
    """Leaves out an axis of an array."""

    def __init__(self, array: str, axis: int, rank: int):
        self._array, self._axis, self._rank = array, axis, rank

    def statement(self, statement: Stmt) -> Stmt:
        blocks = [[self.statement(s) for s in block] for block in blocks_of(statement)]
        result = transformed(statement, blocks, self._of)
        if not isinstance(result, Store) or result.array != self._array:
            return result
        if self._rank == 1:
            value = binary(name(result.array), ast.Add(), result.value) if result.add else result.value
            return Assign(result.array, value, result.line)
        result.index = self._index(result.index)
        return result

    def _index(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(part for k, part in enumerate(index) if k != self._axis)

    def _of(self, node: Expr) -> Expr:
        if self._array not in names_of(node):
            return node
        node = with_parts(node, self._of)
        element = element_of(node)
        if element is None or element[0] != self._array:
            return node
        index = self._index(element[1])
        return load(self._array, index) if index else name(self._array)
