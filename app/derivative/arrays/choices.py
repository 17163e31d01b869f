"""Loops that look for the best of many values: only the last choice has a gradient.

In `for j in ...: if x[j] > best: best = x[j]` the result is the value that was chosen last. So the loop looks for its
index, and the value is read once after the loop; the loop itself has no gradient, and no record.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from app.derivative.arrays.core import (
    Assign,
    Break,
    Expr,
    For,
    If,
    Stmt,
    Store,
    Variable,
    While,
    allocated_in,
    assigned_in,
    blocks_of,
    compare,
    loads_of,
    mapped,
    names_of,
    parts_of,
    renamed,
    replaced,
    same,
    stored_in,
    walk,
)
from app.derivative.arrays.flow import exposed
from app.derivative.terms import name, number

Fresh = Callable[[str, str], str]
"""Makes a variable of a kind with a name like one that is wished for."""


def with_last_choices(
    block: Sequence[Stmt], variables: dict[str, Variable], fresh: Fresh, best_values: set[str]
) -> list[Stmt]:
    """The block with loops that only look for an index in place of those that look for a value.

    The numbers that hold the best value so far are added to `best_values`.
    """
    result: list[Stmt] = []
    for statement in block:
        if isinstance(statement, For):
            before: list[Stmt] = []
            after: list[Stmt] = []
            loop: For = statement
            for key in sorted(assigned_in(loop.body) - best_values):
                choice = _Choice(loop, key, fresh, variables) if variables[key].kind == "float" else None
                if choice is not None and choice.value is not None:
                    loop = choice.searching(before, after, best_values)
            inner = with_last_choices(loop.body, variables, fresh, best_values)
            result += [*before, mapped(loop, [inner]), *after]
        elif isinstance(statement, If):
            parts = [with_last_choices(each, variables, fresh, best_values) for each in blocks_of(statement)]
            result.append(mapped(statement, parts))
        else:
            result.append(statement)
    return result


class _Choice:
    """The one place in a loop where a number gets another value, if this does not depend on the number itself."""

    def __init__(self, loop: For, key: str, fresh: Fresh, variables: dict[str, Variable]):
        self._loop, self._key, self._fresh, self._variables = loop, key, fresh, variables
        self._around: list[For] = []
        """The loops around the place, from the outermost."""
        self._changing: set[str] = set()
        self.value: Expr | None = None
        """The value that is chosen, in terms of the variables of the loops."""
        self._test: Stmt | None = None
        path = self._path(loop.body, [loop])
        if path is None or any(isinstance(s, While) for s in walk(loop.body)):
            return
        self._test, assignment, block, self._around = path
        value = assignment.value if isinstance(self._test, If) else _other(assignment.value, key)
        reads = sum(key in names_of(part) for s in walk(loop.body) for part in parts_of(s))
        if value is None or key in names_of(value) or reads != (key in names_of(parts_of(self._test)[0])):
            return
        self._candidate = value
        self._again: list[Stmt] = []
        """The statements that compute the value, if it is no expression in terms of the variables."""
        self.value = self._in_terms_of_loops(value, block)
        if self.value is None and self._can_run_after(value, block):
            self.value, self._again = value, [*block[: self._position(block)]]

    def _path(self, block: Sequence[Stmt], around: list[For]) -> tuple[Stmt, Assign, Sequence[Stmt], list[For]] | None:
        """The statement that chooses, the assignment, the block of the statement, and the loops around it."""
        assigns = [s for s in walk(block) if isinstance(s, Assign) and s.name == self._key]
        if len(assigns) != 1:
            return None
        for statement in block:
            if statement is assigns[0]:
                return statement, assigns[0], block, around
            if isinstance(statement, If) and assigns[0] in statement.body:
                return statement, assigns[0], block, around
            for inner in blocks_of(statement):
                outer = [*around, statement] if isinstance(statement, For) else around
                path = self._path(inner, outer)
                if path is not None:
                    return path
        return None

    def _in_terms_of_loops(self, value: Expr, block: Sequence[Stmt]) -> Expr | None:
        """The value without numbers that the loop assigns; None if it cannot be computed after the loop."""
        body = self._loop.body
        assigned = assigned_in(body)
        for _ in range(4):
            names = names_of(value) & assigned
            if not names:
                break
            definitions: dict[str, Expr] = {}
            for key in names:
                own = [s for s in walk(body) if isinstance(s, Assign) and s.name == key]
                place = next((i for i, s in enumerate(block) if own and s is own[0]), None)
                if len(own) != 1 or place is None or self._test not in block[place:]:
                    return None
                definitions[key] = own[0].value
            value = replaced(value, definitions)
        around = {loop.var for loop in self._around}
        inner = {s.var for s in walk(body) if isinstance(s, For)} - around
        stored = {array for array in stored_in(body) if not self._stays(array, value, block)}
        changed = assigned | stored | inner
        return None if names_of(value) & changed or not loads_of(value) else value

    def _position(self, block: Sequence[Stmt]) -> int:
        return next(i for i, s in enumerate(block) if s is self._test)

    def _can_run_after(self, value: Expr, block: Sequence[Stmt]) -> bool:
        """Whether what stands before the test in its iteration can be run after the loop, for the value only."""
        before = block[: self._position(block)]
        if block is not self._around[-1].body or any(isinstance(s, (While, Break)) for s in walk(before)):
            return False
        body = self._loop.body
        reads, own = exposed(before) | names_of(value), assigned_in(before)
        around = {loop.var for loop in self._around}
        changed = assigned_in(body) | stored_in(body) | {s.var for s in walk(body) if isinstance(s, For)} - around
        return not stored_in(before) | allocated_in(before) and not exposed(before) & own and not reads - own & changed

    def _stays(self, array: str, value: Expr, block: Sequence[Stmt]) -> bool:
        """Whether what a value reads of an array was stored before in the same iteration, and in no other one."""
        if not all(_is_positive(loop) for loop in self._around):
            return False
        stores = [s for s in walk(self._loop.body) if isinstance(s, Store) and s.array == array]
        before = block[: self._position(block)]
        around = {loop.var for loop in self._around}
        for index in (i for a, i in loads_of(value) if a == array):
            if {i.id for i in index if isinstance(i, ast.Name)} & around != around:
                return False
            if not all(s in before and all(map(same, s.index, index)) for s in stores):
                return False
        return True

    def searching(self, before: list[Stmt], after: list[Stmt], best_values: set[str]) -> For:
        """The loop that only looks for the index; what has to stand before and after it is added."""
        key, line = self._key, self._loop.line
        assert self.value is not None
        best = self._fresh(f"{key}_seen", "float")
        places = {loop.var: self._fresh(f"{key}_{loop.var}", "int") for loop in self._around}
        best_values.add(best)
        before.append(Assign(best, name(key), line))
        never = {loop.var: ast.Constant(-1 if _is_positive(loop) else 0) for loop in self._around}
        before += [Assign(place, never[var], line) for var, place in places.items()]
        signs = [var for var, value in never.items() if value.value == -1]
        choose: list[Stmt] = [Assign(best, self._candidate, line)]
        if signs:
            test: Expr = compare(name(places[signs[0]]), ast.GtE(), number(0))
        else:
            is_chosen = self._fresh(f"{key}_chosen", "bool")
            before.append(Assign(is_chosen, ast.Constant(False), line))
            choose.append(Assign(is_chosen, ast.Constant(True), line))
            test = name(is_chosen)
        own = {each: self._fresh(each, self._variables[each].kind) for each in sorted(assigned_in(self._again))}
        chosen_value = Assign(key, self.value, line)
        after.append(If(test, [renamed(each, {**places, **own}) for each in [*self._again, chosen_value]], [], line))
        choose += [Assign(place, name(var), line) for var, place in places.items()]
        result = self._searching(self._loop, best, choose)
        assert isinstance(result, For)
        return result

    def _searching(self, statement: Stmt, best: str, choose: list[Stmt]) -> Stmt:
        names: dict[str, Expr] = {self._key: name(best)}
        if statement is self._test and isinstance(statement, If):
            rest = [s for s in statement.body if not (isinstance(s, Assign) and s.name == self._key)]
            return If(replaced(statement.test, names), [*choose, *rest], statement.orelse, statement.line)
        if statement is self._test and isinstance(statement, Assign):
            return If(replaced(_is_taken(statement.value, self._key), names), choose, [], statement.line)
        blocks = [[self._searching(s, best, choose) for s in block] for block in blocks_of(statement)]
        return mapped(statement, blocks)


def _is_positive(loop: For) -> bool:
    """Whether the variable of a loop is evidently zero or more."""
    start = loop.start
    return loop.step > 0 and isinstance(start, ast.Constant) and isinstance(start.value, int) and start.value >= 0


def _other(value: Expr, key: str) -> Expr | None:
    """The argument of `max` or `min` beside a number."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or value.func.id not in ("max", "min"):
        return None
    others = [part for part in value.args if not (isinstance(part, ast.Name) and part.id == key)]
    return others[0] if len(value.args) == 2 and len(others) == 1 else None


def _is_taken(value: Expr, key: str) -> Expr:
    """The test of whether `max(key, other)` or `min(key, other)` is the other one: a tie is the first argument."""
    assert isinstance(value, ast.Call)
    assert isinstance(value.func, ast.Name)
    op = ast.Gt() if value.func.id == "max" else ast.Lt()
    first, second = value.args
    if isinstance(first, ast.Name) and first.id == key:
        return compare(second, op, first)
    return ast.UnaryOp(ast.Not(), compare(second, op, first))
