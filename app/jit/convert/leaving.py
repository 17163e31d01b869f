"""Replaces `return`, `break` and `continue` inside branches and loops by flags, which skip the following statements.

After that, each body can become a function. No statement of the user is duplicated.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from app.jit.convert.build import name, statements
from app.jit.convert.names import INNER, contains

LOOPS = (ast.While, ast.For)
JUMPS = (ast.Return, ast.Break, ast.Continue)

VALUE, RETURNED = "_jit_value", "_jit_returned"
"""The variable that holds what the function returns, and the flag that says whether it has returned."""
_BROKE, _SKIPPED = "_jit_broke_", "_jit_skipped_"


def is_flag(variable: str) -> bool:
    """Return whether a variable is a flag that skips the following statements."""
    return variable == RETURNED or variable.startswith((_BROKE, _SKIPPED))


def with_flags(function: ast.FunctionDef) -> None:
    """Rewrite the jumps of a function in place; inner functions are left as they are."""
    body = function.body
    returns_last = not contains([s for s in body if not isinstance(s, ast.Return)], (ast.Return,))
    if not returns_last:
        last = body[-1]
        if not always_leaves(body):
            body = [*body, ast.copy_location(ast.Return(None), last)]
    flags = _Flags()
    new = _Jumps(flags, returns_last).block(body, None)
    if not returns_last:
        new = [*_set(RETURNED, False, body[0]), *new, *statements("return value", body[-1], value=VALUE)]
    function.body = flags.without_unread(new) or [ast.copy_location(ast.Pass(), function)]


def always_leaves(body: Sequence[ast.stmt]) -> bool:
    """Return whether the code after these statements is unreachable."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return always_leaves(last.body) and always_leaves(last.orelse)
    return isinstance(last, (*JUMPS, ast.Raise))


class _Loop(NamedTuple):
    """The flags of a loop."""

    broke: str
    skipped: str


class _Flags:
    """The flags of a function. Flags that are never read are not set."""

    def __init__(self) -> None:
        self.loops = 0
        self._read: set[str] = set()

    def new_loop(self) -> _Loop:
        self.loops += 1
        return _Loop(f"{_BROKE}{self.loops}", f"{_SKIPPED}{self.loops}")

    def any(self, flags: Sequence[str], at: ast.AST) -> ast.expr:
        """Return an expression that is true if any flag is set."""
        self._read.update(flags)
        names = [name(flag, at) for flag in flags]
        return names[0] if len(names) == 1 else ast.copy_location(ast.BoolOp(ast.Or(), names), at)

    def without_unread(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Remove statements that set a flag that is never read."""
        needed: list[ast.stmt] = []
        for statement in body:
            if getattr(statement, "sets", None) in (None, *self._read):
                for inner in _blocks(statement):
                    inner[:] = self.without_unread(inner) or (inner and [ast.copy_location(ast.Pass(), statement)])
                needed.append(statement)
        return needed


def _set(flag: str, value: bool, at: ast.AST) -> list[ast.stmt]:
    """Set a flag; the statement is removed if the flag is never read."""
    assignment: list[Any] = statements(f"flag = {value}", at, flag=flag)
    assignment[0].sets = flag
    return assignment


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the lists of statements inside a statement; none for inner functions and classes."""
    if isinstance(statement, INNER):
        return []
    fields = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
    inner = [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    return [*fields, *(each.body for each in inner)]


def _jumps_out(body: Iterable[ast.AST], kind: type[ast.Break] | type[ast.Continue]) -> bool:
    """Return whether there is such a statement for the loop around these statements."""
    for node in body:
        inner = node.orelse if isinstance(node, LOOPS) else ast.iter_child_nodes(node)
        if isinstance(node, kind) or (not isinstance(node, INNER) and _jumps_out(inner, kind)):
            return True
    return False


class _Jumps:
    """Rewrites the statements of one function."""

    def __init__(self, flags: _Flags, returns_last: bool):
        self.flags, self.returns_last = flags, returns_last

    def block(self, body: Sequence[ast.stmt], loop: _Loop | None) -> list[ast.stmt]:
        """Return statements without jumps. Those after one that may jump are skipped if its flags are set."""
        result: list[ast.stmt] = []
        for place, statement in enumerate(body):
            rest = body[place + 1 :]
            if isinstance(statement, JUMPS):
                return [*result, *self._jump(statement, loop)]
            set_here = self._set_in([statement], loop)
            if set_here and isinstance(statement, ast.If):
                if always_leaves(statement.body):
                    statement.orelse, rest = [*statement.orelse, *rest], []
                elif always_leaves(statement.orelse):
                    statement.body, rest = [*statement.body, *rest], []
            result += self._inside(statement, loop)
            if set_here:
                return [*result, self._unless(set_here, rest, loop)] if rest else result
        return result

    def _jump(self, statement: ast.stmt, loop: _Loop | None) -> list[ast.stmt]:
        if isinstance(statement, ast.Return):
            if self.returns_last:
                return [statement]
            returned = statement.value or ast.copy_location(ast.Constant(None), statement)
            new = statements("value = returned", statement, value=VALUE, returned=returned)
            return [*new, *_set(RETURNED, True, statement)]
        assert loop is not None
        return _set(loop.broke if isinstance(statement, ast.Break) else loop.skipped, True, statement)

    def _set_in(self, body: Sequence[ast.AST], loop: _Loop | None) -> list[str]:
        """Return the flags that statements may set."""
        flags = [RETURNED] if contains(body, (ast.Return,)) else []
        if loop is not None:
            kinds = ((ast.Break, loop.broke), (ast.Continue, loop.skipped))
            flags += [flag for kind, flag in kinds if _jumps_out(body, kind)]
        return flags

    def _unless(self, flags: list[str], body: Sequence[ast.stmt], loop: _Loop | None) -> ast.stmt:
        test = self.flags.any(flags, body[0])
        (conditional,) = statements("if not (test):\n    body", body[0], test=test, body=self.block(body, loop))
        return conditional

    def _inside(self, statement: ast.stmt, loop: _Loop | None) -> list[ast.stmt]:
        if isinstance(statement, LOOPS):
            return self._loop(statement, loop)
        after = getattr(statement, "orelse", None) if isinstance(statement, ast.Try) else None
        flags = self._set_in(statement.body, loop) if isinstance(statement, ast.Try) and after else []
        for inner in _blocks(statement):
            inner[:] = [self._unless(flags, inner, loop)] if flags and inner is after else self.block(inner, loop)
        return [statement]

    def _loop(self, node: Any, around: _Loop | None) -> list[ast.stmt]:
        if isinstance(node, ast.While) and contains([node.test], (ast.NamedExpr,)):
            _test_inside(node)
        loop, otherwise = self.flags.new_loop(), node.orelse
        stops = [flag for flag in self._set_in(node.body, loop) if flag != loop.skipped]
        skips = _jumps_out(node.body, ast.Continue)
        node.orelse, node.body = [], self.block(node.body, loop)
        if skips:
            node.body = [*_set(loop.skipped, False, node), *node.body]
        if not stops:
            return [node, *self.block(otherwise, around)]
        node.stop = self.flags.any(stops, node)
        after = [self._unless(stops, otherwise, around)] if otherwise else []
        return [*(_set(loop.broke, False, node) if loop.broke in stops else []), node, *after]


def _test_inside(node: ast.While) -> None:
    """Move a condition with `:=` into the body, which reads the names that it assigns."""
    end = [*node.orelse, ast.copy_location(ast.Break(), node.test)]
    (test,) = statements("if test:\n    body\nelse:\n    end", node.test, test=node.test, body=node.body, end=end)
    node.body, node.orelse, node.test = [test], [], ast.copy_location(ast.Constant(True), node.test)
