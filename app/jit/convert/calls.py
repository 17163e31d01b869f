"""Calls: `f(x)` becomes `_jit.call(f)(x)`, so that the functions of a user's that are called are converted, too."""

from __future__ import annotations

import ast
from typing import Any

from app.jit.convert.build import expression


def rewrite_call(rewriter: Any, node: ast.Call) -> ast.expr:
    """`super()` says what it means, as it stands in an inner function perhaps; other calls are looked at."""
    if isinstance(node.func, ast.Name) and node.func.id == "super":
        outer = rewriter.scopes[0].parameters
        if node.args or not outer:
            return node
        return expression("super(__class__, me)", node, me=outer[0])
    rewriter.generic_visit(node)
    node.func = expression("_jit.call(f)", node, f=node.func)
    return node
