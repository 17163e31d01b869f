"""`return` inside `if` and loops: rewritten so that each stands at the end of what is run.

What follows an `if` that may return moves into its branches; in a loop, a flag is set, the loop is left, and the flag
is looked at behind it.
"""

from __future__ import annotations

import ast
from typing import Any

from app.jit.convert.build import again, statements
from app.jit.convert.names import contains

LOOPS = (ast.While, ast.For)
LEAVES = (ast.Return, ast.Raise)
VALUE = "returned_value_"
"""How the names begin that hold what a loop returns; they are read only where the loop has returned."""


def settle(body: list[ast.stmt], function: ast.AST) -> list[ast.stmt]:
    """The statements of a function, with its returns at the end of branches. Such an `if` is marked `returning`."""
    if not contains(body, (ast.Return,)):
        return body
    return _settled(body, _Flags())


class _Flags:
    def __init__(self) -> None:
        self.count = 0

    def new(self) -> tuple[str, str]:
        self.count += 1
        return f"returned_{self.count}_", f"{VALUE}{self.count}_"


def _settled(body: list[ast.stmt], flags: _Flags) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for place, statement in enumerate(body):
        rest = body[place + 1 :]
        if isinstance(statement, LEAVES):
            return [*result, statement]
        if not contains([statement], (ast.Return,)):
            result.append(statement)
            continue
        if isinstance(statement, LOOPS):
            return [*result, *_settled([*_left_by_flag(statement, flags), *rest], flags)]
        if isinstance(statement, ast.If):
            statement.body = _settled([*statement.body, *_following(statement.body, rest)], flags)
            statement.orelse = _settled([*statement.orelse, *_following(statement.orelse, rest)], flags)
            statement.returning = True  # type: ignore[attr-defined]
            return [*result, statement]
        if isinstance(statement, ast.With) and (always_leaves(statement.body) or not rest):
            statement.body = _settled(statement.body, flags)
            return [*result, statement]
        _keep_plain(statement)
        result.append(statement)
    return result


def _following(branch: list[ast.stmt], rest: list[ast.stmt]) -> list[ast.stmt]:
    return [] if always_leaves(branch) else again(rest)


def always_leaves(body: list[ast.stmt]) -> bool:
    """Whether nothing that follows these statements is reached."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return always_leaves(last.body) and always_leaves(last.orelse)
    if isinstance(last, ast.With):
        return always_leaves(last.body)
    return isinstance(last, (*LEAVES, ast.Break, ast.Continue))


def _left_by_flag(loop: Any, flags: _Flags) -> list[ast.stmt]:
    """A loop in which a return sets a flag and breaks, and the `if` behind it that returns."""
    flag, value = flags.new()
    before = statements("flag = False", loop, flag=flag)
    loop.body = _flagged(loop.body, flag, value)
    after = statements("if flag:\n    return value", loop, flag=flag, value=value)
    return [*before, loop, *after]


def _flagged(body: list[ast.stmt], flag: str, value: str) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Return):
            given = statement.value or ast.copy_location(ast.Constant(None), statement)
            new = statements("value = given\nflag = True", statement, flag=flag, value=value, given=given)
            return [*result, *new, ast.copy_location(ast.Break(), statement)]
        returns = contains([statement], (ast.Return,))
        for field in ("body", "orelse", "finalbody", "handlers"):
            inner = getattr(statement, field, None)
            if returns and isinstance(inner, list):
                for handler in inner if field == "handlers" else []:
                    handler.body = _flagged(handler.body, flag, value)
                if field != "handlers":
                    setattr(statement, field, _flagged(inner, flag, value))
        result.append(statement)
        if returns and isinstance(statement, LOOPS):
            result += _break_if(flag, statement)
    return result


def _break_if(flag: str, at: ast.stmt) -> list[ast.stmt]:
    (loop,) = statements("while True:\n    if flag:\n        break", at, flag=flag)
    return list(loop.body)  # type: ignore[attr-defined]


def _keep_plain(statement: ast.stmt) -> None:
    """Mark every `if` inside that returns: from there it cannot be converted."""
    for inner in ast.walk(statement):
        if isinstance(inner, (ast.If, *LOOPS)) and contains([inner], (ast.Return,)):
            inner.plain = "it returns out of a `try` or `with`"  # type: ignore[union-attr]
