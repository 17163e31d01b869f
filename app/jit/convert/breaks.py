"""`break` and `continue`: rewritten into flags, which the rest of the loop's body and its condition look at."""

from __future__ import annotations

import ast
from typing import Any

from app.jit.convert.build import statements
from app.jit.convert.names import contains

LOOPS = (ast.While, ast.For)


class Breaks(ast.NodeTransformer):
    """Rewrites every loop of a function, the inner ones first. A loop that is left early is marked with its `stop`."""

    def __init__(self) -> None:
        self.count = 0

    def visit_While(self, node: ast.While) -> Any:
        return self._loop(node)

    def visit_For(self, node: ast.For) -> Any:
        return self._loop(node)

    def _loop(self, node: Any) -> Any:
        self.generic_visit(node)
        breaks, skips = (contains(node.body, (kind,), LOOPS) for kind in (ast.Break, ast.Continue))
        otherwise, node.orelse = node.orelse, []
        if not (breaks or skips):
            return [node, *otherwise]
        self.count += 1
        broke, skipped = f"broke_{self.count}_", f"skipped_{self.count}_"
        node.body, _ = _without(node.body, broke if breaks else None, skipped if skips else None)
        if skips:
            node.body = [*statements("skipped = False", node, skipped=skipped), *node.body]
        if not breaks:
            return [node, *otherwise]
        node.stop = broke
        if otherwise:
            otherwise = statements("if not broke:\n    body", node, broke=broke, body=otherwise)
        return [*statements("broke = False", node, broke=broke), node, *otherwise]


def _without(body: list[ast.stmt], broke: str | None, skipped: str | None) -> tuple[list[ast.stmt], bool]:
    """Statements with flags for `break` and `continue`, and whether these may be set in them."""
    result: list[ast.stmt] = []
    for place, statement in enumerate(body):
        if isinstance(statement, (ast.Break, ast.Continue)):
            flag = broke if isinstance(statement, ast.Break) else skipped
            return [*result, *statements("flag = True", statement, flag=flag)], True
        result.append(statement)
        if not contains([statement], (ast.Break, ast.Continue), LOOPS) or isinstance(statement, LOOPS):
            continue
        _inside(statement, broke, skipped)
        rest, _ = _without(body[place + 1 :], broke, skipped)
        if rest:
            flags = " or ".join(flag for flag in (broke, skipped) if flag)
            result += statements(f"if not ({flags}):\n    body", rest[0], body=rest)
        return result, True
    return result, False


def _inside(statement: Any, broke: str | None, skipped: str | None) -> None:
    for field in ("body", "orelse", "finalbody"):
        inner = getattr(statement, field, None)
        if isinstance(inner, list) and inner:
            setattr(statement, field, _without(inner, broke, skipped)[0])
    for handler in getattr(statement, "handlers", ()):
        handler.body = _without(handler.body, broke, skipped)[0]
