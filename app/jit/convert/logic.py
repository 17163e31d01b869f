"""`and`, `or`, `not` and `assert`. With Tensors they append operators."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from app.custom.py_func import py_func
from app.errors import OperatorError
from app.jit.convert.branch import choose
from app.jit.convert.build import expression, statements
from app.jit.convert.names import cannot_wait
from app.jit.convert.state import as_condition, as_truth, dtype_of, is_value, tracer
from app.jit.variable import RefusedError
from app.ops.logic import logical_not
from app.reading import place_of

# Rewriting


def ask(node: Any) -> None:
    """Mark an expression as a condition, of which only the truth value matters."""
    node.asked = True
    for part in node.values if isinstance(node, ast.BoolOp) else ():
        ask(part)


def rewrite_and_or(rewriter: Any, node: ast.BoolOp) -> ast.expr:
    """Rewrite `a and b` as `_jit.and_(lambda: a, lambda: b)`, with `result=True` unless it is a condition."""
    rewriter.generic_visit(node)
    if cannot_wait(node):
        return node
    call: Any = expression("_jit.and_()" if isinstance(node.op, ast.And) else "_jit.or_()", node)
    call.args = [expression("lambda: value", value, value=value) for value in node.values]
    if not hasattr(node, "asked"):
        call.keywords = [ast.keyword("result", ast.copy_location(ast.Constant(True), node))]
    return call


def rewrite_not(rewriter: Any, node: ast.UnaryOp) -> ast.expr:
    """Rewrite `not a` as `_jit.not_(a)`."""
    if isinstance(node.op, ast.Not):
        ask(node.operand)
    rewriter.generic_visit(node)
    return expression("_jit.not_(a)", node, a=node.operand) if isinstance(node.op, ast.Not) else node


def rewrite_assert(rewriter: Any, node: ast.Assert) -> list[ast.stmt]:
    """Rewrite `assert a, b` as `_jit.assert_(a, lambda: b, "a")`."""
    source = ast.copy_location(ast.Constant(ast.unparse(node.test)), node)
    ask(node.test)
    rewriter.generic_visit(node)
    message = node.msg or ast.copy_location(ast.Constant(None), node)
    call = "_jit.assert_(test, lambda: message, source)"
    return statements(call, node, test=node.test, message=message, source=source)


# Meaning


def and_(*parts: Callable[[], Any], result: bool = False) -> Any:
    """Python's `and`. After a Tensor the result is a boolean Tensor, and the later parts are a branch.

    `result` says that the value itself is used, which with a Tensor must be a boolean.
    """
    return _joined(parts, False, result)


def or_(*parts: Callable[[], Any], result: bool = False) -> Any:
    """Python's `or`, likewise."""
    return _joined(parts, True, result)


def _joined(parts: Sequence[Callable[[], Any]], ends_with: bool, result: bool) -> Any:
    """Evaluate parts until one decides, that is, has the truth value `ends_with`."""
    value: Any = not ends_with
    for place, part in enumerate(parts, 1):
        value = part()
        if is_value(value) and place < len(parts):
            rest = partial(_rest, parts[place:], ends_with, result)
            then, otherwise = (lambda: True, rest) if ends_with else (rest, lambda: False)
            return choose(_truth(value, part, ends_with, result), then, otherwise, place_of(parts[place]))
        if not is_value(value) and bool(value) is ends_with:
            return value
    return value


def _rest(parts: Sequence[Callable[[], Any]], ends_with: bool, result: bool) -> Any:
    return _truth(_joined(parts, ends_with, result), parts[-1], ends_with, result)


def _truth(value: Any, part: Callable[[], Any], ends_with: bool, result: bool) -> Any:
    """The truth value, which must be the value itself if that is used."""
    boolean = dtype_of(value) == "bool" if is_value(value) else isinstance(value, (bool, np.bool_))
    if result and not boolean:
        word, choice = ("or", "a if a else b") if ends_with else ("and", "b if a else a")
        raise RefusedError(
            f"`a {word} b` at {place_of(part)} has the value of a or of b in Python, but with a Tensor it is a "
            f"boolean. Write `{choice}`, or compare (`a > 0 {word} b > 0`)"
        )
    truth = as_condition(value, place_of(part))
    return truth.reshape([]) if is_value(truth) else truth


def not_(value: Any) -> Any:
    """Python's `not`, or the operator."""
    return logical_not(as_truth(value)) if is_value(value) else not value


class FailedAssertionError(OperatorError, AssertionError):
    """An `assert` about a Tensor that is false when a trace runs."""


def assert_(test: Any, message: Callable[[], Any], source: str) -> None:
    """Python's `assert` of what the source says. For a Tensor it appends an operator that raises when it runs."""
    if not is_value(test):
        if not test:
            text = message()
            raise AssertionError(*([] if text is None else [text]))
        return
    text = message()

    def assertion(value: Any) -> None:
        if not value.all():
            raise FailedAssertionError(f"`{source}` is false" if text is None else str(text))

    py_func(assertion, tracer().value(as_truth(test)), None)
