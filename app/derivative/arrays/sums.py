"""Adds up in a number what a loop of a derived function adds to one element."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence

from app.derivative.arrays.core import (
    Assign,
    Copied,
    Expr,
    For,
    Function,
    If,
    Stmt,
    Store,
    Variable,
    While,
    binary,
    blocks_of,
    compare,
    has_break,
    names_of,
    parts_in,
    parts_of,
    plus,
    remembered,
    shape_of,
    text_of,
    walk,
)
from app.derivative.arrays.dependence import Dependence
from app.derivative.arrays.effects import Effects
from app.derivative.arrays.pushing import function_of
from app.derivative.slopes import EXTREMES, FLAT, ROWS
from app.derivative.terms import name, number, number_in

_CHOOSING = {"sign", "copysign", "remainder", "abs", "absolute", "fabs", "clip"}
SMOOTH = {f for f, row in ROWS.items() if row not in EXTREMES and row not in _CHOOSING} - FLAT
"""Functions whose results change as little as their arguments do."""

New = Callable[[str, Variable], str]
"""Makes a variable with a name like one that is wished for."""


def promoted(block: list[Stmt], function: Function, new: New, free: set[str]) -> list[Stmt]:
    """The block with a number in place of an element to which a loop only adds.

    `free` are arrays that may be rounded in another way.
    """
    _Promoting(block, function, new, free).walk(block)
    return block


class _Promoting:
    def __init__(self, root: list[Stmt], function: Function, new: New, free: set[str]):
        self._new, self._free = new, free
        self._dependence = Dependence(function.with_body(root))

    def walk(self, block: list[Stmt]) -> None:
        position = 0
        while position < len(block):
            statement = block[position]
            if isinstance(statement, For) and not has_break(statement.body):
                self._loop(statement, block)
                position = next(p for p, s in enumerate(block) if statement in walk([s]))
            for inner in blocks_of(statement):
                self.walk(inner)
            position += 1

    def _loop(self, loop: For, block: list[Stmt]) -> None:
        effects = Effects([loop])
        inner = {s.var for s in walk([loop]) if isinstance(s, For)}
        arrays = effects.added & self._free - effects.reads - effects.assigned - effects.made
        groups: dict[tuple[str, str], list[Store]] = {}
        for store in walk(loop.body):
            if not isinstance(store, Store) or store.array not in arrays:
                continue
            sections = any(isinstance(part, ast.Slice) for part in store.index)
            if not sections and not {key for part in store.index for key in names_of(part)} & (effects.changed | inner):
                text = ", ".join(map(text_of, store.index))
                groups.setdefault((store.array, text), []).append(store)
        for stores in groups.values():
            tests = self._tests(loop, stores)
            if tests is not None:
                self._promote(loop, block, stores, tests)

    def _tests(self, loop: For, stores: Sequence[Store]) -> list[Expr] | None:
        """What has to hold so that there is such an element, even if the loop has no iteration."""
        place, store = self._dependence.place(loop), stores[0]
        sizes = [shape_of(store.array, axis) for axis in range(len(store.index))]
        inside = (
            self._dependence.is_in_order(part, place) and self._dependence.holds(compare(part, ast.Lt(), size), place)
            for part, size in zip(store.index, sizes, strict=True)
        )
        if all(inside):
            return []
        chains = sorted((c for each in stores if (c := _chain_to(each, loop)) is not None), key=len)
        around = [{id(each) for each in self._dependence.place(store).loops} for store in stores]
        if not chains or not all({*map(id, chains[0])} <= each for each in around):
            return None  # one store may run where another does not
        return self._tests_of(chains[0])

    def _tests_of(self, loops: Sequence[For]) -> list[Expr] | None:
        """The tests of whether loops, each around the next one, have an iteration; None if this is not known before."""
        effects = Effects(loops[:1])
        changed = effects.changed | {s.var for s in walk(loops[:1]) if isinstance(s, For)}
        tests = []
        for loop in loops:
            low, high = (loop.start, loop.stop) if loop.step > 0 else (plus(loop.stop, 1), plus(loop.start, 1))
            test = compare(high, ast.Gt(), low)
            ends = number_in(low), number_in(high)
            evident = None not in ends and ends[0] < ends[1]  # type: ignore[operator]
            if evident or self._dependence.holds(test, self._dependence.place(loop)):
                continue
            if names_of(test) & changed:
                return None
            tests.append(test)
        return tests

    def _promote(self, loop: For, block: list[Stmt], stores: Sequence[Store], tests: Sequence[Expr]) -> None:
        array, index = stores[0].array, stores[0].index
        parts = [str(p.value) if isinstance(p, ast.Constant) else p.id for p in index if _is_plain(p)]  # type: ignore[attr-defined]
        text = self._new(
            "_".join([array, *parts]) if len(parts) == len(index) else f"{array}_sum", Variable(0, "float")
        )
        for store in stores:
            _replace(loop.body, store, Assign(text, binary(name(text), ast.Add(), store.value), store.line))
        position = block.index(loop)
        last = Store(array, index, name(text), True, loop.line)
        after = _together(tests, [last], loop.line)
        block[position : position + 1] = [Assign(text, number(0.0), loop.line), loop, *after]


def _is_plain(node: Expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and isinstance(node.value, int))


def _replace(block: list[Stmt], old: Stmt, new: Stmt) -> None:
    for position, statement in enumerate(block):
        if statement is old:
            block[position] = new
        for inner in blocks_of(statement):
            _replace(inner, old, new)


def _chain_to(statement: Stmt, loop: For) -> list[For] | None:
    """The loops from one to a statement inside of it; None if there are branches around the statement."""
    if any(each is statement for each in loop.body):
        return [loop]
    for each in loop.body:
        inner = _chain_to(statement, each) if isinstance(each, For) and not has_break(each.body) else None
        if inner is not None:
            return [loop, *inner]
    return None


def _together(tests: Sequence[Expr], block: list[Stmt], line: int) -> list[Stmt]:
    """A block that runs if tests hold."""
    if not tests:
        return block
    return [If(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), [*tests]), block, [], line)]


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
