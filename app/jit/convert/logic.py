"""`and`, `or`, `not` and `assert`. With Tensors they append operators."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.custom.py_func import py_func
from app.errors import OperatorError
from app.graph.control import Traced, append_cond, traced
from app.graph.passes.rewrite import is_pure
from app.graph.program import Block, Operator
from app.jit.convert.build import expression, statements
from app.jit.convert.state import as_condition, as_truth, as_variable, dtype_of, is_value, tracer
from app.jit.variable import RefusedError
from app.ops.definition import REGISTRY
from app.ops.lowering import Alias, Constant, Elementwise, Reduction
from app.ops.spec import UNKNOWN
from app.reading import place_of


def cannot_wait(*nodes: ast.AST) -> bool:
    """Return whether an expression cannot be moved into a lambda, because it assigns names or suspends the function."""
    kinds = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return any(isinstance(inner, kinds) for node in nodes for inner in ast.walk(node))


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
    """Python's `and`. With a Tensor the result is a Tensor; later parts are still computed only if Python would.

    `result` says that the value itself is used, which with a Tensor must be a boolean.
    """
    return _joined(parts, False, result)


def or_(*parts: Callable[[], Any], result: bool = False) -> Any:
    """Python's `or`, likewise."""
    return _joined(parts, True, result)


def _joined(parts: Sequence[Callable[[], Any]], ends_with: bool, result: bool) -> Any:
    """Evaluate parts until one decides, that is, has the truth value `ends_with`."""
    value: Any = not ends_with
    for place, part in enumerate(parts):
        value = part()
        if is_value(value):
            with tracer().control_flow(place_of(part)):
                return _with_tensors(value, parts[place:], ends_with, result)
        if bool(value) is ends_with:
            return value
    return value


def _with_tensors(value: Any, parts: Sequence[Callable[[], Any]], ends_with: bool, wanted: bool) -> Any:
    """Join a Tensor's truth value with those of the other parts.

    A part that can neither fail nor have effects is always computed, and joined by a logical operator. Other parts
    become a branch, which runs only if the parts before it do not decide.
    """
    if len(parts) == 1:
        return value
    name, program = "logical_or" if ends_with else "logical_and", tracer().program
    if wanted:
        _check_boolean(value, parts[0], name)
    result = _truth(value, parts[0])
    for part in parts[1:]:
        with program.sub_block() as block, tracer().region(place_of(part)):
            value = part()
            if wanted:
                _check_boolean(value, part, name)
            truth = _truth(value, part) if is_value(value) else None
        if truth is None:
            del program.blocks[block.idx :]
            if bool(value) is ends_with:
                return ends_with
        elif all(_is_harmless(block, op) for op in block.ops):
            _move_up(block)
            result = REGISTRY[name](result, truth)
        else:
            decided = traced(program, lambda _: [as_variable(ends_with, "bool")])
            rest = Traced(block, [truth])
            (result,) = append_cond(result, *((decided, rest) if ends_with else (rest, decided)))
    return result


def _check_boolean(value: Any, part: Callable[[], Any], name: str) -> None:
    """Refuse a value that Python's `and` or `or` might return, and that is neither true nor false."""
    if dtype_of(value) != "bool" if is_value(value) else not isinstance(value, (bool, np.bool_)):
        word = name.rpartition("_")[2]
        choice = "b if a else a" if word == "and" else "a if a else b"
        raise RefusedError(
            f"`a {word} b` at {place_of(part)} has the value of a or of b in Python, but with a Tensor it is a "
            f"boolean. Write `{choice}`, or compare (`a > 0 {word} b > 0`)"
        )


def _truth(value: Any, part: Callable[[], Any]) -> Any:
    truth = as_condition(value, place_of(part))
    return truth.reshape([]) if truth.shape else truth


def _is_harmless(block: Block, operator: Operator) -> bool:
    """Return whether an operator can be run although Python might not evaluate it."""
    if operator.definition.custom or not is_pure(block, operator):
        return False
    known = all(UNKNOWN not in block.var(name).shape for name in operator.input_arg_names)
    lowering = operator.definition.lowering
    return isinstance(lowering, (Elementwise, Constant, Alias)) or (known and isinstance(lowering, Reduction))


def _move_up(block: Block) -> None:
    """Move the operators of the last block to the block around it."""
    outer = block.program.current_block()
    for variable in block.vars.values():
        variable.block = outer
    outer.vars.update(block.vars)
    outer.ops += block.ops
    del block.program.blocks[block.idx :]


def not_(value: Any) -> Any:
    """Python's `not`, or the operator."""
    return REGISTRY["logical_not"](as_truth(value)) if is_value(value) else not value


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
