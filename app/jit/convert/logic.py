"""`and`, `or`, `not`, chains of comparisons and `assert`: with Tensors among them, operators of logic."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from app.custom.py_func import py_func
from app.jit.convert.build import expression, statements
from app.jit.convert.state import as_truth, is_value, tracer
from app.ops.definition import REGISTRY

COMPARISONS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
}
_MEANT = dict(COMPARISONS.values())


def cannot_wait(*nodes: ast.AST) -> bool:
    """Whether an expression cannot be put into a function of its own, to be computed only where it is wanted."""
    kinds = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return any(isinstance(inner, kinds) for node in nodes for inner in ast.walk(node))


# Rewriting


def rewrite_and_or(rewriter: Any, node: ast.BoolOp) -> ast.expr:
    """`a and b` as `_jit.and_(lambda: a, lambda: b)`."""
    rewriter.generic_visit(node)
    if cannot_wait(node):
        return node
    call: Any = expression("_jit.and_()" if isinstance(node.op, ast.And) else "_jit.or_()", node)
    call.args = [expression("lambda: value", value, value=value) for value in node.values]
    return call


def rewrite_not(rewriter: Any, node: ast.UnaryOp) -> ast.expr:
    """`not a` as `_jit.not_(a)`."""
    rewriter.generic_visit(node)
    return expression("_jit.not_(a)", node, a=node.operand) if isinstance(node.op, ast.Not) else node


def rewrite_chain(rewriter: Any, node: ast.Compare) -> ast.expr:
    """`a < b < c` as `_jit.chain(a, ('<', '<'), lambda: b, lambda: c)`."""
    rewriter.generic_visit(node)
    if len(node.ops) == 1 or not all(type(op) in COMPARISONS for op in node.ops) or cannot_wait(node):
        return node
    call: Any = expression("_jit.chain(a)", node, a=node.left)
    call.args.append(expression(repr(tuple(COMPARISONS[type(op)][0] for op in node.ops)), node))
    call.args += [expression("lambda: value", value, value=value) for value in node.comparators]
    return call


def rewrite_assert(rewriter: Any, node: ast.Assert) -> list[ast.stmt]:
    """`assert a, b` as `_jit.assert_(a, lambda: b)`."""
    rewriter.generic_visit(node)
    message = node.msg or ast.copy_location(ast.Constant(None), node)
    return statements("_jit.assert_(test, lambda: message)", node, test=node.test, message=message)


# Meaning


def and_(*parts: Callable[[], Any]) -> Any:
    """Python's `and`; from the first Tensor on, an operator, for which all the rest is computed."""
    value: Any = True
    for place, part in enumerate(parts):
        value = part()
        if is_value(value):
            return _joined("logical_and", value, parts[place + 1 :])
        if not value:
            return value
    return value


def or_(*parts: Callable[[], Any]) -> Any:
    """Python's `or`, in the same way."""
    value: Any = False
    for place, part in enumerate(parts):
        value = part()
        if is_value(value):
            return _joined("logical_or", value, parts[place + 1 :])
        if value:
            return value
    return value


def _joined(name: str, value: Any, parts: Sequence[Callable[[], Any]]) -> Any:
    result = as_truth(value)
    for part in parts:
        result = REGISTRY[name](result, as_truth(part()))
    return result


def not_(value: Any) -> Any:
    """Python's `not`, or the operator."""
    return REGISTRY["logical_not"](as_truth(value)) if is_value(value) else not value


def chain(first: Any, operators: Sequence[str], *others: Callable[[], Any]) -> Any:
    """`a < b < c`, in which each value is computed once."""
    left = [first]

    def link(sign: str, other: Callable[[], Any]) -> Callable[[], Any]:
        def compare() -> Any:
            right = other()
            result = _MEANT[sign](left[0], right)
            left[0] = right
            return result

        return compare

    return and_(*[link(sign, other) for sign, other in zip(operators, others, strict=True)])


def assert_(test: Any, message: Callable[[], Any]) -> None:
    """Python's `assert`; of a Tensor, an operator that raises when the function runs."""
    if not is_value(test):
        if not test:
            told = message()
            raise AssertionError(*([] if told is None else [told]))
        return
    told = message()

    def check(value: Any) -> None:
        if not value.all():
            raise AssertionError(*([] if told is None else [told]))

    py_func(check, tracer().value(as_truth(test)), None)
