"""Which elements of an array two statements may touch: indices as linear forms, compared by proof.

Everything that is not proven counts as touching. An index that cannot be shown to be zero or more may wrap around, and
so may be any element.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.derivative.arrays.core import (
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
    loads_of,
    names_of,
    parts_of,
    shape_of,
    text_of,
    walk,
    whole_in,
)

Atom = tuple[str, int, int]
"""The variable of a loop in one of the iterations that are compared, or a number that never changes."""


@dataclass
class Linear:
    """A sum of atoms with integer factors."""

    factors: dict[Atom, int]
    constant: int = 0

    def plus(self, other: Linear, times: int = 1) -> Linear:
        factors = dict(self.factors)
        for atom, factor in other.factors.items():
            factors[atom] = factors.get(atom, 0) + times * factor
            if not factors[atom]:
                del factors[atom]
        return Linear(factors, self.constant + times * other.constant)

    def shifted(self, by: int) -> Linear:
        return Linear(self.factors, self.constant + by)


@dataclass(eq=False)
class Test:
    """A branch around a statement."""

    statement: If
    holds: bool

    def excludes(self, other: Test) -> bool:
        """Whether the other one is the other branch."""
        return self.statement is other.statement and self.holds != other.holds


@dataclass
class Place:
    """Where a statement stands: the loops and tests around it, and its number in the text."""

    loops: tuple[For, ...]
    tests: tuple[Test, ...]
    order: int
    counted: bool = False
    """Whether it is inside of a loop that only counts, whose iterations are not told apart."""


@dataclass(eq=False)
class Access:
    """An element that a statement reads or writes."""

    array: str
    index: tuple[Expr, ...]
    place: Place
    after: bool = False
    """Whether it is read after its statement has written."""
    is_write: bool = False
    pushed: bool = False
    """Whether the reverse reads it, and not only the statement when it runs."""

    @property
    def moment(self) -> float:
        """A statement first reads, then writes, and its reverse may read what it has written."""
        return self.place.order + (0.5 if self.after else 0.25 if self.is_write else 0.0)


class _Side:
    """The place of one of the accesses that are compared."""

    def __init__(self, place: Place, shared: int | None = None):
        self.place, self.loops = place, place.loops
        self._shared = shared
        """Of how many loops the other access is in the same iteration; None for the first access."""
        self.key = (place.order, len(place.loops), shared)

    def outside(self, loop: For) -> _Side:
        """The same side, outside of a loop."""
        return _Side(Place(self.loops[: self.loops.index(loop)], self.place.tests, self.place.order), self._shared)

    def loop(self, variable: str) -> For | None:
        return next((each for each in reversed(self.loops) if each.var == variable), None)

    def atom(self, loop: For) -> Atom:
        own = self._shared is not None and self.loops.index(loop) >= self._shared
        return ("loop", id(loop), 1 + self._shared if own and self._shared is not None else 0)


class Dependence:
    """Answers questions about the accesses of a function."""

    def __init__(self, function: Function):
        self.function = function
        self.places: dict[int, Place] = {}
        self._sides: dict[Atom, tuple[For, _Side]] = {}
        self._facts: dict[Atom, list[Linear]] = {}
        self._nonnegative: set[Atom] = set()
        self._linear: dict[Any, tuple[Expr, Linear | None]] = {}
        self._bounds: dict[Any, tuple[list[Linear], list[Linear]]] = {}
        self._holding: dict[Any, list[Linear]] = {}
        """The facts of a place."""
        self._texts: dict[str, int] = {}
        self._single: dict[str, Assign] = {}
        self._allocs: dict[str, Alloc | Copied] = dict(function.shapes)
        self._number(function.body, (), ())
        counts: dict[str, int] = {}
        for statement in walk(function.body):
            if isinstance(statement, Assign):
                counts[statement.name] = counts.get(statement.name, 0) + 1
                self._single[statement.name] = statement
            elif isinstance(statement, (Alloc, Copied)):
                self._allocs[statement.name] = statement
        self._single = {key: value for key, value in self._single.items() if counts[key] == 1}
        self._loop_variables = {s.var for s in walk(function.body) if isinstance(s, For)}

    def _number(
        self,
        block: Sequence[Stmt],
        loops: tuple[For, ...],
        tests: tuple[Test, ...],
        counted: bool = False,
    ) -> None:
        for statement in block:
            self.places[id(statement)] = Place(loops, tests, len(self.places), counted)
            if isinstance(statement, For):
                self._number(statement.body, (*loops, statement), tests, counted)
            elif isinstance(statement, If):
                yes, no = Test(statement, True), Test(statement, False)
                self._number(statement.body, loops, (*tests, yes), counted)
                self._number(statement.orelse, loops, (*tests, no), counted)
            elif isinstance(statement, While):
                self._number(statement.body, loops, tests, True)

    def place(self, statement: Stmt) -> Place:
        return self.places[id(statement)]

    def definition(self, key: str, place: Place) -> Assign | None:
        """The only assignment of a number, if the number has its value at a place that follows."""
        single = self._single.get(key)
        if single is None or key in self.function.settings or key in self._loop_variables:
            return None
        at = self.places[id(single)]
        around = place.loops[: len(at.loops)] == at.loops and place.tests[: len(at.tests)] == at.tests
        return single if around and at.order < place.order and not at.counted else None

    # Numbers that never change

    def is_constant(self, node: Expr, depth: int = 8) -> bool:
        """Whether an expression has one value from the place where its variables are assigned, in every iteration."""
        if loads_of(node):
            return False
        return all(self._is_constant_name(each, depth) for each in names_of(node) if each not in _PLAIN)

    def _is_constant_name(self, text: str, depth: int) -> bool:
        if text in self.function.settings:
            return text not in self._assigned()
        single = self._single.get(text)
        if single is None or text in self._loop_variables or depth == 0:
            return False
        place = self.places[id(single)]
        return not place.loops and not place.tests and self.is_constant(single.value, depth - 1)

    def _assigned(self) -> set[str]:
        return {s.name for s in walk(self.function.body) if isinstance(s, Assign)}

    # Linear forms

    def linear(self, node: Expr, side: _Side) -> Linear | None:
        """An integer expression as a linear form; None if it is none, or may change."""
        key = id(node), side.key
        if key not in self._linear:
            self._linear[key] = node, self._linear_of(node, side)
        return self._linear[key][1]

    def _linear_of(self, node: Expr, side: _Side) -> Linear | None:
        if isinstance(node, ast.Constant):
            return Linear({}, node.value) if type(node.value) is int else None
        if isinstance(node, ast.Name):
            return self._linear_name(node, side)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.linear(node.operand, side)
            return None if inner is None else Linear({}).plus(inner, -1)
        if isinstance(node, ast.BinOp):
            return self._linear_operation(node, side)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return self._linear_shape(node, side)
        return None

    def _linear_name(self, node: ast.Name, side: _Side) -> Linear | None:
        loop = side.loop(node.id)
        if loop is not None:
            atom = side.atom(loop)
            self._sides[atom] = (loop, side)
            return Linear({atom: 1})
        if node.id in self._loop_variables:
            return None
        variable = self.function.variables.get(node.id)
        if variable is None or variable.rank or variable.kind != "int":
            return None
        if node.id in self.function.settings:
            return Linear({self._text(node): 1}) if self.is_constant(node) else None
        single = self.definition(node.id, Place(side.loops, side.place.tests, side.place.order))
        if single is None:
            return None
        result = self.linear(single.value, side)
        if result is None and self.is_constant(node):
            result = Linear({self._text(node): 1})
            if self._is_nonnegative(single.value, side):
                self._nonnegative.add(self._text(node))
        return result

    def _linear_operation(self, node: ast.BinOp, side: _Side) -> Linear | None:
        left, right = self.linear(node.left, side), self.linear(node.right, side)
        if left is None or right is None:
            return None
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return left.plus(right, 1 if isinstance(node.op, ast.Add) else -1)
        if isinstance(node.op, ast.Mult):
            for one, other in ((left, right), (right, left)):
                if not one.factors:
                    return Linear({}).plus(other, one.constant)
        if isinstance(node.op, ast.FloorDiv) and not right.factors and right.constant > 0 and self.is_constant(node):
            atom = self._text(node)
            quotient, size = Linear({atom: 1}), right.constant
            self._facts[atom] = [
                left.plus(quotient, -size),
                Linear({}).plus(quotient, size).plus(left, -1).shifted(size - 1),
            ]
            if self.is_at_least(left, 0, []):
                self._nonnegative.add(atom)
            return quotient
        return None

    def _linear_shape(self, node: ast.Subscript, side: _Side) -> Linear | None:
        assert isinstance(node.value, ast.Attribute)
        assert isinstance(node.slice, ast.Constant)
        assert isinstance(node.value.value, ast.Name)
        assert isinstance(node.slice.value, int)
        array, axis = node.value.value.id, node.slice.value
        alloc = self._allocs.get(array)
        if isinstance(alloc, Copied):
            return self.linear(shape_of(alloc.source, axis), side)
        if isinstance(alloc, Alloc) and self.is_constant(alloc.shape[axis]):
            return self.linear(alloc.shape[axis], side)
        if alloc is not None:
            return None
        atom = self._text(node)
        self._nonnegative.add(atom)
        return Linear({atom: 1})

    def _text(self, node: Expr) -> Atom:
        return ("text", self._texts.setdefault(text_of(node), len(self._texts)), 0)

    def _is_nonnegative(self, node: Expr, side: _Side) -> bool:
        """Whether a constant that is no linear form is zero or more."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("max", "len"):
            return any(self._at_least_zero(each, side) for each in node.args) or node.func.id == "len"
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Add)):
            return self._at_least_zero(node.left, side) and self._at_least_zero(node.right, side)
        return False

    def _at_least_zero(self, node: Expr, side: _Side) -> bool:
        form = self.linear(node, side)
        return self.is_at_least(form, 0, []) if form is not None else self._is_nonnegative(node, side)

    # Proofs

    def is_at_least(self, form: Linear, bound: int, facts: Sequence[Linear], depth: int = 3) -> bool:
        """Whether a form is proven to be at least a number. Each fact is a form that is zero or more."""
        form = form.shifted(-bound)
        if self._bounded(form):
            return True
        if not depth:
            return False
        own = [fact for atom in form.factors for fact in self._facts.get(atom, [])]
        for fact in [*facts, *own]:
            shared = [(form.factors.get(atom, 0), factor) for atom, factor in fact.factors.items()]
            times = [max(1, one // other) for one, other in shared if one * other > 0]
            if times:
                rest = [f for f in facts if f is not fact]
                if self.is_at_least(form.plus(fact, -max(times)), 0, rest, depth - 1):
                    return True
        return any(self.is_at_least(each, 0, facts, depth - 1) for each in self._without_loop(form))

    def _bounded(self, form: Linear) -> bool:
        if all(a[0] != "loop" for a in form.factors):
            return form.constant >= 0 and all(f > 0 and a in self._nonnegative for a, f in form.factors.items())
        return any(self._bounded(each) for each in self._without_loop(form))

    def _without_loop(self, form: Linear) -> list[Linear]:
        """Forms that are no larger, with the bounds of the innermost loop in place of its variable."""
        loops = [a for a in form.factors if a[0] == "loop"]
        if not loops:
            return []
        atom = max(
            loops, key=lambda a: len(self._sides[a][1].loops[: self._sides[a][1].loops.index(self._sides[a][0])])
        )
        loop, side = self._sides[atom]
        factor = form.factors[atom]
        lower, upper = self.bounds(loop, side.outside(loop))
        rest = Linear({a: f for a, f in form.factors.items() if a != atom}, form.constant)
        return [rest.plus(each, factor) for each in (lower if factor > 0 else upper)]

    def bounds(self, loop: For, outer: _Side) -> tuple[list[Linear], list[Linear]]:
        """Lower and upper bounds of the variable of a loop."""
        key = loop, outer.key
        if key not in self._bounds:
            ends = (loop.start, loop.stop) if loop.step > 0 else (loop.stop, loop.start)
            shifts = (0, -1) if loop.step > 0 else (1, 0)
            self._bounds[key] = (
                self._ends(ends[0], "max", outer, shifts[0]),
                self._ends(ends[1], "min", outer, shifts[1]),
            )
        return self._bounds[key]

    def _ends(self, node: Expr, function: str, side: _Side, shift: int) -> list[Linear]:
        nodes = [node]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
            nodes = list(node.args)
        forms = [self.linear(each, side) for each in nodes]
        return [form.shifted(shift) for form in forms if form is not None]

    def facts(self, side: _Side) -> list[Linear]:
        """What holds where a statement runs: its loops are not empty, and the tests around it were passed."""
        if side.key in self._holding:
            return self._holding[side.key]
        result: list[Linear] = []
        for loop in side.loops:
            lower, upper = self.bounds(loop, side.outside(loop))
            result += [high.plus(low, -1) for low in lower for high in upper]
        for test in side.place.tests:
            result += self._of_test(test.statement.test, test.holds, side)
        self._holding[side.key] = [fact for fact in result if fact.factors]
        return self._holding[side.key]

    def _of_test(self, test: Expr, holds: bool, side: _Side) -> list[Linear]:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._of_test(test.operand, not holds, side)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == holds:
            return [fact for each in test.values for fact in self._of_test(each, holds, side)]
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return []
        left, right = self.linear(test.left, side), self.linear(test.comparators[0], side)
        if left is None or right is None:
            return []
        kind = type(test.ops[0])
        if not holds:
            kind = _NEGATED.get(kind, kind)
            if kind is type(test.ops[0]):
                return []
        difference = left.plus(right, -1)
        opposite = Linear({}).plus(difference, -1)
        return {
            ast.GtE: [difference],
            ast.Gt: [difference.shifted(-1)],
            ast.LtE: [opposite],
            ast.Lt: [opposite.shifted(-1)],
            ast.Eq: [difference, opposite],
        }.get(kind, [])

    def is_in_order(self, index: Expr, place: Place) -> bool:
        """Whether an index is proven to be zero or more, so that it does not wrap around."""
        side = _Side(place)
        form = self.linear(index, side)
        return form is not None and self.is_at_least(form, 0, self.facts(side))

    def holds(self, test: Expr, place: Place) -> bool:
        """Whether a comparison of two integers is proven."""
        side = _Side(place)
        facts = self.facts(side)
        proofs = self._of_test(test, True, side)
        constants = [form.constant >= 0 for form in proofs if not form.factors]
        return bool(proofs) and all(constants) and all(self.is_at_least(f, 0, facts) for f in proofs if f.factors)

    def offset(self, first: Expr, second: Expr, place: Place) -> int | None:
        """By how much an index is larger than another, if it is by a constant."""
        side = _Side(place)
        one, other = self.linear(first, side), self.linear(second, side)
        difference = None if one is None or other is None else other.plus(one, -1)
        return None if difference is None or difference.factors else difference.constant

    # Accesses

    def may_touch(self, first: Access, second: Access, equal: Sequence[For], later: For | None) -> bool:
        """Whether accesses may be of one element, in the same iteration of some loops and a later one of another."""
        if len(first.index) != len(second.index) or first.place.counted or second.place.counted:
            return True
        one, other = _Side(first.place), _Side(second.place, len(equal))
        facts = [*self.facts(one), *self.facts(other)]
        if later is not None:
            for loop, side in ((later, one), (later, other)):
                self._sides[side.atom(loop)] = (loop, side)
            moved = Linear({other.atom(later): 1}).plus(Linear({one.atom(later): 1}), -1)
            sign = 1 if later.step > 0 else -1
            facts.insert(0, Linear({}).plus(moved, sign).shifted(-abs(later.step)))
        for left, right in zip(first.index, second.index, strict=True):
            a, b = self.linear(left, one), self.linear(right, other)
            if a is None or b is None or not (self.is_at_least(a, 0, facts) and self.is_at_least(b, 0, facts)):
                continue
            if self.is_at_least(b.plus(a, -1), 1, facts) or self.is_at_least(a.plus(b, -1), 1, facts):
                return False
        return True

    def touches_later(self, first: Access, second: Access, fixed: Sequence[For] = ()) -> bool:
        """Whether the second access may be of the first one's element, and happen after it.

        `fixed` are loops of which both are in the same iteration.
        """
        if first.place.counted and second.place.counted:
            return True
        common = _common(first, second)
        start = len(fixed)
        if any(self.may_touch(first, second, common[:number], common[number]) for number in range(start, len(common))):
            return True
        exclusive = any(a.excludes(b) for a in first.place.tests for b in second.place.tests)
        return second.moment > first.moment and not exclusive and self.may_touch(first, second, common, None)

    def touches_in_other(self, first: Access, second: Access, loop: For) -> bool:
        """Whether the accesses may be of one element in two different iterations of a loop around both."""
        common = _common(first, second)
        outer = common[: common.index(loop)]
        return self.may_touch(first, second, outer, loop) or self.may_touch(second, first, outer, loop)


_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.GtE: ast.Lt,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.NotEq: ast.Eq,
}
_PLAIN = {"max", "min", "abs", "len", "int", "float", "round"}


def _common(first: Access, second: Access) -> tuple[For, ...]:
    count = 0
    for one, other in zip(first.place.loops, second.place.loops, strict=False):
        if one is not other:
            break
        count += 1
    return first.place.loops[:count]


def accesses(array: str, block: Sequence[Stmt], dependence: Dependence) -> list[Access] | None:
    """The accesses of an array in a block; None if it is also named without an index."""
    result: list[Access] = []
    for statement in walk(block):
        if isinstance(statement, Copied) and array == statement.source and statement.function == "copy":
            return None
        place = dependence.place(statement)
        for part in parts_of(statement):
            if array in whole_in(part):
                return None
            result += [Access(array, index, place) for text, index in loads_of(part) if text == array]
        if isinstance(statement, Store) and statement.array == array:
            result.append(Access(array, statement.index, place, is_write=True))
    return result
