"""Derives statements: each assignment is preceded by the assignments of its slopes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from app.derivative.expressions import Expressions, Term
from app.derivative.scope import Scope
from app.derivative.terms import name, names_in, number

Finish = Callable[[ast.Return, list[Term]], ast.expr]
"""Makes the expression of a return statement from the terms that are returned."""

_AS_THEY_ARE = (ast.Pass, ast.Break, ast.Continue, ast.Raise, ast.Assert)


class Body:
    """Derives the statements of one function."""

    def __init__(self, scope: Scope, expressions: Expressions, finish: Finish):
        self.scope, self.expressions, self._finish = scope, expressions, finish
        scope.settle(lambda: list(_assignments(scope.body)))
        stored = [n.id for n in ast.walk(scope.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self._changing = {key for key in stored if stored.count(key) > 1} | (scope.assigned & {*scope.parameters})
        """Names that may have several values in one call."""
        for loop in ast.walk(scope.tree):
            if isinstance(loop, (ast.For, ast.While)):
                self._changing |= names_in(loop)

    def derived(self) -> list[ast.stmt]:
        """All statements, after the initial slopes of parameters that are assigned to."""
        scope = self.scope
        start: list[ast.stmt] = []
        for variable in scope.parameters:
            if variable in scope.assigned:
                for along in scope.active.get(variable, []):
                    start.append(self._slope(variable, along, number(1.0 if along == variable else 0.0)))
        return [*start, *self._all(scope.body)]

    def _slope(self, variable: str, along: str, value: ast.expr) -> ast.Assign:
        return ast.Assign([ast.Name(self.expressions.slope_variable(variable, along), ast.Store())], value)

    def _all(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        derived: list[ast.stmt] = []
        for statement in statements:
            outside, self.expressions.before = self.expressions.before, []
            result = self._one(statement)
            derived += [*self.expressions.before, *result]
            self.expressions.before = outside
        return derived or [ast.Pass()]

    def _one(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, _AS_THEY_ARE):
            return [statement]
        if isinstance(statement, ast.Return):
            return self._returned(statement)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            return self._assigned(statement)
        if isinstance(statement, ast.If):
            return [ast.If(statement.test, self._all(statement.body), self._some(statement.orelse))]
        if isinstance(statement, ast.While):
            return [ast.While(statement.test, self._all(statement.body), self._some(statement.orelse))]
        if isinstance(statement, ast.For):
            return self._loop(statement)
        if self.scope.is_idle(statement):
            return []
        return self.scope.refuse(statement, "is a statement that cannot be derived")

    def _some(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        return self._all(statements) if statements else []

    def _loop(self, loop: ast.For) -> list[ast.stmt]:
        if self.scope.depends(loop.iter) or any(n in self.scope.active for n in names_in(loop.target)):
            self.scope.refuse(loop.iter, "depends on an input, and a loop over it has no known slope")
        return [ast.For(loop.target, loop.iter, self._all(loop.body), self._some(loop.orelse))]

    def _returned(self, statement: ast.Return) -> list[ast.stmt]:
        value = statement.value
        if value is None:
            self.scope.refuse(statement, "returns nothing; a number is expected")
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        terms = [self.expressions.term(part) for part in parts]
        return [ast.Return(self._finish(statement, terms))]

    def _assigned(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, ast.AnnAssign) and statement.value is None:
            return []
        pairs = _pairs(statement)
        if pairs is None:
            if self.scope.depends(statement):
                self.scope.refuse(statement, "assigns to something other than a local variable, and cannot be derived")
            return [statement]
        targets, values = [target for target, _ in pairs], [value for _, value in pairs]
        if len(pairs) == 1 and not _is_tuple(statement):
            return self._variable(targets[0], values[0])
        if values[0] is not values[-1]:
            return [self._together(targets, [self.expressions.term(value) for value in values])]
        if not self.scope.depends(values[0]):
            return [statement, *self._flat(targets)]
        value = values[0]
        if not isinstance(value, ast.Call):
            self.scope.refuse(statement, "unpacks something other than the call of a function, and cannot be derived")
        wishes = [""] * len(targets)
        return [self._together(targets, self.expressions.of_user(value, self.scope.meaning(value.func), wishes))]

    def _flat(self, targets: list[str]) -> list[ast.stmt]:
        """Slopes of zero for variables that have nonzero ones elsewhere."""
        return [self._slope(t, along, number(0.0)) for t in targets for along in self.scope.active.get(t, [])]

    def _together(self, targets: list[str], terms: list[Term]) -> ast.stmt:
        """Several variables and their slopes in one assignment: each may depend on the old values of the others."""
        names, values = list(targets), [term.source() for term in terms]
        for target, term in zip(targets, terms, strict=True):
            for along in self.scope.active.get(target, []):
                names.append(self.expressions.slope_variable(target, along))
                values.append(term.slopes.get(along, number(0.0)))
        stored = ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())
        return ast.Assign([stored], ast.Tuple(values, ast.Load()))

    def _variable(self, target: str, value: ast.expr) -> list[ast.stmt]:
        """A variable and its slopes. The slopes come first, as they need the old values of variables."""
        again = target in names_in(value)
        term = self.expressions.term(value, "" if again else target)
        assignments: list[ast.stmt] = [
            self._slope(target, along, term.slopes.get(along, number(0.0)))
            for along in self.scope.active.get(target, [])
        ]
        assignments.append(ast.Assign([ast.Name(target, ast.Store())], term.source()))
        self.expressions.remember(target, term, lambda key: key not in self._changing)
        return [s for s in assignments if not _says_nothing(s)]


def _pairs(statement: ast.stmt) -> list[tuple[str, ast.expr]] | None:
    """The variables that a statement assigns to, with the expressions; None for other targets."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        whole = ast.BinOp(name(statement.target.id), statement.op, statement.value)
        return [(statement.target.id, ast.copy_location(whole, statement))]
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
        return [(statement.target.id, statement.value)]
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if not isinstance(target, ast.Tuple):
        return None
    parts = value.elts if isinstance(value, ast.Tuple) else []
    values = parts if len(parts) == len(target.elts) else [value] * len(target.elts)
    pairs = [(t.id, v) for t, v in zip(target.elts, values, strict=True) if isinstance(t, ast.Name)]
    return pairs if len(pairs) == len(target.elts) else None


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether a statement assigns a variable to itself."""
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == ast.unparse(statement.value)


def _is_tuple(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple)


def _assignments(statements: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.stmt):
                yield from _pairs(node) or []
