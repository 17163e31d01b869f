"""Assignments inside expressions (`:=`) as statements of their own, before the statement that has them.

    if (t := x * x) > 1.0:                  t = x * x
        return t                    is      if t > 1.0:
                                                return t

That is the same where the assignment is always reached, and nothing before it in the statement reads the variable. What
may be skipped, as the right side of `and` may, is refused.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import NoReturn

Refuse = Callable[[ast.AST, str], NoReturn]

_PLACES = {
    ast.Return: ("value",),
    ast.Assign: ("value",),
    ast.AugAssign: ("value",),
    ast.AnnAssign: ("value",),
    ast.Expr: ("value",),
    ast.If: ("test",),
    ast.For: ("iter",),
}
"""The expressions that a statement computes once, before all else that it does."""

_ADVICE = "assigns to {} where it may be skipped or read before; write the assignment as a statement of its own"


def without_walrus(statements: list[ast.stmt], refuse: Refuse) -> list[ast.stmt]:
    """Statements that do the same without assignments inside expressions."""
    made: list[ast.stmt] = []
    for statement in statements:
        if not isinstance(statement, (ast.If, ast.While, ast.For)):
            made += _taken_out(statement, refuse)
            continue
        plain = copy.copy(statement)
        plain.body = without_walrus(statement.body, refuse)
        plain.orelse = without_walrus(statement.orelse, refuse)
        if isinstance(plain, ast.While) and _walrus_in(plain.test):
            made += _loop(plain, refuse)
        else:
            made += _taken_out(plain, refuse)
    return made


def _taken_out(statement: ast.stmt, refuse: Refuse) -> list[ast.stmt]:
    """A statement after the assignments that its expressions make."""
    taking = _Taking(refuse, statement)
    if isinstance(statement, ast.AugAssign):
        taking.read.update(part.id for part in ast.walk(statement.target) if isinstance(part, ast.Name))
    plain = copy.copy(statement)
    for field, value in ast.iter_fields(statement):
        if field in _PLACES.get(type(statement), ()) and value is not None:
            setattr(plain, field, taking.expression(value))
        elif field not in ("body", "orelse"):
            for part in value if isinstance(value, list) else [value]:
                taking.refuse_in(part)
    return [*taking.before, plain]


def _loop(loop: ast.While, refuse: Refuse) -> list[ast.stmt]:
    """`while test: ...` as `while True:`, which makes the assignments and leaves the loop where the test fails."""
    taking = _Taking(refuse, loop)
    test = taking.expression(loop.test)
    if any(isinstance(node, (ast.Break, ast.Continue)) for part in loop.orelse for node in ast.walk(part)):
        refuse(loop, "assigns inside its test, and has a break or continue after else; write it in another way")
    leave = ast.If(ast.UnaryOp(ast.Not(), test), [*loop.orelse, ast.Break()], [])
    body = [*taking.before, ast.copy_location(leave, loop), *loop.body]
    return [ast.copy_location(ast.While(ast.Constant(True), body, []), loop)]


class _Taking:
    """Takes the assignments out of the expressions of a statement, in the order in which Python makes them."""

    def __init__(self, refuse: Refuse, statement: ast.stmt):
        self._refuse, self._statement = refuse, statement
        self.before: list[ast.stmt] = []
        self.read: set[str] = set()
        """The variables that the statement has read so far."""

    def expression(self, node: ast.expr) -> ast.expr:
        """An expression that is always computed, without assignments."""
        if isinstance(node, ast.Name):
            self.read.add(node.id)
            return node
        if isinstance(node, ast.NamedExpr):
            return self._assigned(node)
        made = copy.copy(node)
        for field, value in ast.iter_fields(node):
            parts = value if isinstance(value, list) else [value]
            first = _always(node, field, len(parts))
            found = [self._part(part, place < first) for place, part in enumerate(parts)]
            setattr(made, field, found if isinstance(value, list) else found[0])
        return made

    def _part(self, part: object, always: bool) -> object:
        if always and isinstance(part, ast.keyword):
            return ast.copy_location(ast.keyword(part.arg, self.expression(part.value)), part)
        if always and isinstance(part, ast.expr):
            return self.expression(part)
        self.refuse_in(part)
        return part

    def _assigned(self, node: ast.NamedExpr) -> ast.expr:
        outside, target = set(self.read), node.target
        value = self.expression(node.value)
        self.read = outside  # what the value reads, it reads before the statement now
        if target.id in self.read:
            self._refuse(node, _ADVICE.format(target.id))
        self.read.add(target.id)
        assignment = ast.Assign([ast.Name(target.id, ast.Store())], value)
        self.before.append(ast.copy_location(assignment, node))
        return ast.copy_location(ast.Name(target.id, ast.Load()), node)

    def refuse_in(self, part: object) -> None:
        """Refuse an assignment inside what may not be computed, or not at once; note what it reads."""
        for node in ast.walk(part) if isinstance(part, ast.AST) else ():
            if isinstance(node, ast.NamedExpr):
                self._refuse(node, _ADVICE.format(node.target.id))
            if isinstance(node, ast.Name):
                self.read.add(node.id)


def _always(node: ast.expr, field: str, count: int) -> int:
    """How many of the parts of an expression, in one of its fields, are always computed, in the order of the fields."""
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Dict)):
        return 0
    if isinstance(node, ast.IfExp):
        return int(field == "test")
    return 1 if (type(node), field) in ((ast.BoolOp, "values"), (ast.Compare, "comparators")) else count


def _walrus_in(node: ast.AST) -> bool:
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))
