"""Sums of a derived function: in a number, where a loop adds to one element, and of several statements in one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from app.custom.derivative.arrays.core import (
    Assign,
    Expr,
    For,
    Function,
    If,
    Stmt,
    Store,
    Variable,
    binary,
    blocks_of,
    compare,
    has_break,
    mapped,
    names_of,
    plus,
    same,
    shape_of,
    text_of,
    walk,
)
from app.custom.derivative.arrays.dependence import Dependence
from app.custom.derivative.arrays.effects import Effects
from app.custom.derivative.terms import name, negative, number, number_in, product, total

_WIDTH = 100
"""How long the sum of two statements may be."""

New = Callable[[str, Variable], str]
"""Makes a variable with a name like one that is wished for."""


# Sums in numbers


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


# Sums of one element


def summed(block: Sequence[Stmt], free: set[str]) -> list[Stmt]:
    """The block with one statement in place of two that add to one element, if nothing between them prevents it.

    `free` are numbers and arrays that may be rounded in another way.
    """
    result = [mapped(s, [summed(b, free) for b in blocks_of(s)]) if blocks_of(s) else s for s in block]
    result = [_with_one_sum(s) if isinstance(s, Assign) and s.name in free else s for s in result]
    position = 0
    while position < len(result):
        if not _sum_up(result, position, free):
            position += 1
    return result


def _with_one_sum(statement: Assign) -> Assign:
    """`a = a + (b + c)` for `a = a + b + c`."""
    terms: list[Expr] = []
    rest = statement.value
    while isinstance(rest, ast.BinOp) and isinstance(rest.op, (ast.Add, ast.Sub)):
        terms.insert(0, rest.right if isinstance(rest.op, ast.Add) else negative(rest.right))
        rest = rest.left
    if len(terms) < 2 or not isinstance(rest, ast.Name) or rest.id != statement.name:
        return statement
    value = terms[0]
    for term in terms[1:]:
        value = _sum(value, term)
    return Assign(statement.name, total(rest, value) or rest, statement.line)


def _sum_up(block: list[Stmt], position: int, free: set[str]) -> bool:
    """Add what a statement adds in a later one; gives whether there is such a one."""
    first = block[position]
    if not isinstance(first, Store) or first.array not in free or any(isinstance(i, ast.Slice) for i in first.index):
        return False
    own = Effects([first])
    for place in range(position + 1, len(block)):
        second = block[place]
        if isinstance(second, Store) and second.array == first.array and second.add and _is_one(first, second):
            value = _sum(first.value, second.value)
            if first.array in names_of(second.value) or len(text_of(value)) > _WIDTH:
                return False
            block[place] = Store(first.array, first.index, value, first.add, first.line)
            del block[position]
            return True
        if not Effects([second]).commutes_with(own):
            return False
    return False


def _sum(first: Expr, second: Expr) -> Expr:
    """A sum with as few signs as a person would write."""
    if same(first, second):
        return product(number(2), first) or first
    negated = [isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.USub) for each in (first, second)]
    if all(negated):
        return negative(_sum(negative(first), negative(second)))
    if negated[0]:
        first, second = second, first
    return total(first, second) or first


def _is_one(first: Store, second: Store) -> bool:
    return len(first.index) == len(second.index) and all(map(same, first.index, second.index))
