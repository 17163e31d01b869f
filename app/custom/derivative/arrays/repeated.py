"""Spares the loops of a derived function what they would do again and again.

A sum into one element is added up in a number. What a loop does not change is computed before it. A function's results
that a second loop needs again are kept.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from app.custom.derivative.arrays.core import (
    Alloc,
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
    element_of,
    has_break,
    load,
    loads_of,
    names_of,
    parts_of,
    plus,
    replaced,
    same,
    shape_of,
    text_of,
    transformed,
    walk,
)
from app.custom.derivative.arrays.dependence import Dependence
from app.custom.derivative.arrays.fusing import Effects
from app.custom.derivative.arrays.pushing import function_of
from app.custom.derivative.slopes import KNOWN
from app.custom.derivative.terms import name, number, number_in, with_parts

New = Callable[[str, Variable], str]
"""Makes a variable with a name like one that is wished for."""


class _Loops:
    """What is known of the loops of a block."""

    def __init__(self, root: list[Stmt], function: Function, new: New):
        self.root, self.new, self.variables = root, new, function.variables
        self._function = function
        self.refresh()

    def refresh(self) -> None:
        """See the block as it is now."""
        self.dependence = Dependence(self._function.with_body(self.root))

    def walk(self) -> None:
        self._walk(self.root)

    def _walk(self, block: list[Stmt]) -> None:
        position = 0
        while position < len(block):
            statement = block[position]
            if isinstance(statement, For) and not has_break(statement.body):
                self.loop(statement, block)
                position = next(p for p, s in enumerate(block) if statement in walk([s]))
            for inner in blocks_of(statement):
                self._walk(inner)
            position += 1

    def loop(self, loop: For, block: list[Stmt]) -> None:
        raise NotImplementedError

    def tests_of(self, loops: Sequence[For]) -> list[Expr] | None:
        """The tests of whether loops, each around the next one, have an iteration; None if this is not known before."""
        effects = Effects(loops[:1])
        changed = effects.changed | {s.var for s in walk(loops[:1]) if isinstance(s, For)}
        tests = []
        for loop in loops:
            low, high = (loop.start, loop.stop) if loop.step > 0 else (plus(loop.stop, 1), plus(loop.start, 1))
            test = compare(high, ast.Gt(), low)
            ends = number_in(low), number_in(high)
            evident = None not in ends and ends[0] < ends[1]  # type: ignore[operator]
            if evident or self.dependence.holds(test, self.dependence.place(loop)):
                continue
            if names_of(test) & changed:
                return None
            tests.append(test)
        return tests


def chain_to(statement: Stmt, loop: For) -> list[For] | None:
    """The loops from one to a statement inside of it; None if there are branches around the statement."""
    if any(each is statement for each in loop.body):
        return [loop]
    for each in loop.body:
        inner = chain_to(statement, each) if isinstance(each, For) and not has_break(each.body) else None
        if inner is not None:
            return [loop, *inner]
    return None


def _together(tests: Sequence[Expr], block: list[Stmt], line: int) -> list[Stmt]:
    """A block that runs if tests hold."""
    if not tests:
        return block
    return [If(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), [*tests]), block, [], line)]


# Sums in numbers


def promoted(block: list[Stmt], function: Function, new: New, free: set[str]) -> list[Stmt]:
    """The block with a number in place of an element to which a loop only adds.

    `free` are arrays that may be rounded in another way.
    """
    promoting = _Promoting(block, function, new)
    promoting.free = free
    promoting.walk()
    return block


class _Promoting(_Loops):
    free: set[str]

    def loop(self, loop: For, block: list[Stmt]) -> None:
        effects = Effects([loop])
        inner = {s.var for s in walk([loop]) if isinstance(s, For)}
        arrays = effects.added & self.free - effects.reads - effects.assigned - effects.made
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
        place, store = self.dependence.place(loop), stores[0]
        sizes = [shape_of(store.array, axis) for axis in range(len(store.index))]
        inside = (
            self.dependence.is_in_order(part, place) and self.dependence.holds(compare(part, ast.Lt(), size), place)
            for part, size in zip(store.index, sizes, strict=True)
        )
        if all(inside):
            return []
        chains = sorted((c for each in stores if (c := chain_to(each, loop)) is not None), key=len)
        around = [{id(each) for each in self.dependence.place(store).loops} for store in stores]
        if not chains or not all({*map(id, chains[0])} <= each for each in around):
            return None  # one store may run where another does not
        return self.tests_of(chains[0])

    def _promote(self, loop: For, block: list[Stmt], stores: Sequence[Store], tests: Sequence[Expr]) -> None:
        array, index = stores[0].array, stores[0].index
        parts = [str(p.value) if isinstance(p, ast.Constant) else p.id for p in index if is_plain(p)]  # type: ignore[attr-defined]
        text = self.new("_".join([array, *parts]) if len(parts) == len(index) else f"{array}_sum", Variable(0, "float"))
        for store in stores:
            _replace(loop.body, store, Assign(text, binary(name(text), ast.Add(), store.value), store.line))
        position = block.index(loop)
        last = Store(array, index, name(text), True, loop.line)
        after = _together(tests, [last], loop.line)
        block[position : position + 1] = [Assign(text, number(0.0), loop.line), loop, *after]


def is_plain(node: Expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and isinstance(node.value, int))


def _replace(block: list[Stmt], old: Stmt, new: Stmt) -> None:
    for position, statement in enumerate(block):
        if statement is old:
            block[position] = new
        for inner in blocks_of(statement):
            _replace(inner, old, new)


# Results that are needed again


def kept(block: list[Stmt], function: Function, new: New, records: set[str]) -> list[Stmt]:
    """The block with an array of the results of a function that two loops over one range compute."""
    _Keeping(block, function, new, records).keep(block)
    return block


class _Keeping:
    def __init__(self, root: list[Stmt], function: Function, new: New, records: set[str]):
        self._new, self._records = new, records
        self._dependence = Dependence(function.with_body(root))

    def keep(self, block: list[Stmt]) -> None:
        for position, first in enumerate(block):
            for other in range(position + 1, len(block)):
                second = block[other]
                if isinstance(first, For) and isinstance(second, For) and self._keep(block, position, other):
                    return self.keep(block)
        for statement in block:
            for inner in blocks_of(statement):
                self.keep(inner)
        return None

    def _keep(self, block: list[Stmt], position: int, other: int) -> bool:
        first, second = block[position], block[other]
        assert isinstance(first, For)
        assert isinstance(second, For)
        place = self._dependence.places.get(id(first))
        size = plus(first.stop, 0)
        low = number_in(first.start)
        if place is None or first.step != 1 or low is None or low < 0 or has_break(first.body):
            return False
        if first.step != second.step or not same(first.start, second.start) or not same(first.stop, second.stop):
            return False
        if not self._dependence.holds(compare(size, ast.GtE(), number(0)), place):
            return False
        changed = Effects(block[position : other + 1]).changed
        if names_of(size) & changed:
            return False
        for statement in first.body:
            for part in parts_of(statement) if isinstance(statement, (Assign, Store)) else ():
                for node in calls_in(part):
                    if names_of(node) & changed or first.var not in names_of(node):
                        continue
                    text = text_of(replaced(node, {first.var: name(second.var)}))
                    if any(text in map(text_of, calls_in(p)) for s in walk(second.body) for p in parts_of(s)):
                        self._store(block, (first, second), statement, node)
                        return True
        return False

    def _store(self, block: list[Stmt], loops: tuple[For, For], statement: Stmt, node: ast.Call) -> None:
        first, second = loops
        function = node.func.attr if isinstance(node.func, ast.Attribute) else "value"
        text = self._new(f"{function}s", Variable(1, "float"))
        self._records.add(text)
        at = first.body.index(statement)
        element = load(text, [name(first.var)])
        first.body[at : at + 1] = [
            Store(text, (name(first.var),), node, False, statement.line),
            _with(statement, text_of(node), element),
        ]
        wanted = text_of(replaced(node, {first.var: name(second.var)}))
        second.body[:] = [_with(s, wanted, load(text, [name(second.var)])) for s in second.body]
        block.insert(block.index(first), Alloc(text, "empty", (first.stop,), None, None, first.line))


_COSTLY = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh", "cosh"),
    *("tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "erf", "erfc", "hypot", "arctan2"),
    *("logaddexp", "logaddexp2"),
}
"""Rows of functions that take time, and whose results are no integers."""


def calls_in(node: Expr) -> list[ast.Call]:
    """The calls of functions that take time, and that are computed in any case."""
    if isinstance(node, (ast.IfExp, ast.BoolOp)):
        return []
    own = [node] if isinstance(node, ast.Call) and KNOWN.get(function_of(node.func)) in _COSTLY else []
    inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return [*own, *(each for child in inner for each in calls_in(child))]


def _with(statement: Stmt, text: str, new: Expr) -> Stmt:
    """A statement with another expression in place of one."""

    def of(node: Expr) -> Expr:
        if text not in text_of(node):
            return node
        return new if text_of(node) == text else with_parts(node, of)

    blocks = [[_with(s, text, new) for s in block] for block in blocks_of(statement)]
    return transformed(statement, blocks, of)


# Invariants


def lifted(block: list[Stmt], function: Function, new: New) -> list[Stmt]:
    """The block with quotients and functions of what a loop does not change computed before the loop."""
    _Lifting(block, function, new).walk()
    return block


class _Lifting(_Loops):
    def loop(self, loop: For, block: list[Stmt]) -> None:
        effects = Effects([loop])
        changed = effects.changed | {s.var for s in walk([loop]) if isinstance(s, For)}
        for statement in list(walk(loop.body)):
            if not isinstance(statement, (Assign, Store)):
                continue
            node = _invariant(statement.value, changed)
            chain = None if node is None else chain_to(statement, loop)
            tests = None if chain is None else self.tests_of(chain)
            if node is None or tests is None:
                continue
            text = self.new("g", Variable(0, "float"))
            wanted = text_of(node)
            loop.body[:] = [_with(s, wanted, name(text)) for s in loop.body]
            position = block.index(loop)
            block[position : position + 1] = _together(tests, [Assign(text, node, loop.line), loop], loop.line)
            self.refresh()
            return


def _invariant(node: Expr, changed: set[str]) -> Expr | None:
    """A quotient or a call, with an element of an array in it, that does not change."""
    if isinstance(node, (ast.IfExp, ast.BoolOp)) or not isinstance(node, ast.expr):
        return None
    if not names_of(node) & changed and loads_of(node):
        divides = any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) for n in ast.walk(node))
        if (divides or calls_in(node)) and element_of(node) is None:
            return node
        return None
    inner = (_invariant(child, changed) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
    return next((each for each in inner if each is not None), None)
