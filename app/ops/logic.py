"""Comparisons, logical and bitwise operators, and `where`."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.definition import REGISTRY, OpDef, operator
from app.ops.dtype import canonical
from app.ops.elementwise import elementwise, to_common_type
from app.ops.lowering import Elementwise
from app.ops.public import public
from app.ops.spec import Spec, broadcast
from app.ops.values import Applied, Array, Element, Gradients, Kernel, OnnxRule, Results, Value


def _test(name: str, doc: str, kernel: Kernel, onnx: str | OnnxRule) -> OpDef:
    """Declare a public elementwise function whose results are booleans."""
    kernel.__name__, kernel.__doc__ = name, f"{doc}."
    return public(method=True)(elementwise(result="bool", onnx=onnx)(kernel))


# fmt: off
equal = _test("equal", "x == y, elementwise", lambda x, y: x == y, "Equal")
not_equal = _test("not_equal", "x != y, elementwise", lambda x, y: x != y,
                  lambda onnx, x, y: onnx.Not(onnx.Equal(x, y)))
less_than = _test("less_than", "x < y, elementwise", lambda x, y: x < y, "Less")
less_equal = _test("less_equal", "x <= y, elementwise", lambda x, y: x <= y, "LessOrEqual")
greater_than = _test("greater_than", "x > y, elementwise", lambda x, y: x > y, "Greater")
greater_equal = _test("greater_equal", "x >= y, elementwise", lambda x, y: x >= y, "GreaterOrEqual")
logical_and = _test("logical_and", "Logical and, elementwise", lambda x, y: np.logical_and(x, y), "And")
logical_or = _test("logical_or", "Logical or, elementwise", lambda x, y: np.logical_or(x, y), "Or")
logical_xor = _test("logical_xor", "Logical exclusive or, elementwise", lambda x, y: np.logical_xor(x, y), "Xor")
logical_not = _test("logical_not", "Logical not, elementwise", lambda x: np.logical_not(x), "Not")
isnan = _test("isnan", "Whether each element is NaN", lambda x: np.isnan(x), "IsNaN")
isinf = _test("isinf", "Whether each element is positive or negative infinity", lambda x: np.isinf(x), "IsInf")
isfinite = _test("isfinite", "Whether each element is finite: neither infinity nor NaN", lambda x: np.isfinite(x),
                 lambda onnx, x: onnx.Not(onnx.Or(onnx.IsNaN(x), onnx.IsInf(x))))
# fmt: on


def _bitwise(name: str, doc: str, kernel: Kernel, onnx: OnnxRule) -> OpDef:
    """Declare a bitwise operator on integers; on booleans it is the logical operator."""
    kernel.__name__, kernel.__doc__ = name, f"{doc}, elementwise."
    return public(method=True, in_place=True)(elementwise(integral=True, onnx=onnx)(kernel))


def _of_two(name: str) -> OnnxRule:
    """The ONNX rule of an operator with separate ONNX operators for booleans and integers."""
    return lambda onnx, x, y: getattr(onnx, name if x.dtype == "bool" else f"Bitwise{name}")(x, y)


bitwise_and = _bitwise("bitwise_and", "Bitwise and", lambda x, y: np.bitwise_and(x, y), _of_two("And"))
bitwise_or = _bitwise("bitwise_or", "Bitwise or", lambda x, y: np.bitwise_or(x, y), _of_two("Or"))
bitwise_xor = _bitwise("bitwise_xor", "Bitwise exclusive or", lambda x, y: np.bitwise_xor(x, y), _of_two("Xor"))
bitwise_not = _bitwise("bitwise_not", "Bitwise not", lambda x: np.invert(x),
                       lambda onnx, x: onnx.Not(x) if x.dtype == "bool" else onnx.BitwiseNot(x))  # fmt: skip


def _is_close_one(x: Element, y: Element, rtol: float, atol: float, equal_nan: bool) -> Element:
    return x == y or bool(abs(x - y) <= atol + rtol * abs(y) < np.inf) or (equal_nan and x != x and y != y)


@public(method=True)
@elementwise(floating=True, result="bool", scalar=_is_close_one)
def isclose(x: Array, y: Array, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Results:
    """Whether two values are close, elementwise: abs(x - y) <= atol + rtol * abs(y)."""
    return np.isclose(x, y, rtol, atol, equal_nan)


def _infer_where(condition: Spec, x: Spec, y: Spec) -> Spec:
    return Spec(broadcast(condition.shape, x.shape, y.shape), x.dtype)


def _prepare_where(values: list[Any]) -> list[Applied]:
    [condition] = to_common_type(values[:1])  # refuses None and texts, which NumPy would take as False and True
    if canonical(condition.dtype) != "bool":
        condition = REGISTRY["cast"](condition, dtype="bool")
    return [condition, *to_common_type(values[1:])]


def _choose(condition: Element, x: Element, y: Element) -> Element:
    return x if condition else y


@public(method=True)
@operator(_infer_where, prepare=_prepare_where, broadcasts=True, lowering=Elementwise(_choose), onnx="Where")
def where(condition: Array, x: Array, y: Array) -> Results:
    """Elements of `x` where `condition` is true, and of `y` elsewhere."""
    return np.where(condition, x, y)


@where.gradient_of("x")
def _(condition: Value, dout: Value) -> Gradients:
    return where(condition, dout, 0.0)


@where.gradient_of("y")
def _(condition: Value, dout: Value) -> Gradients:
    return where(condition, 0.0, dout)
