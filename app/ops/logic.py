"""Comparisons, logical operators and `where`."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.definition import REGISTRY, operator
from app.ops.dtype import canonical
from app.ops.elementwise import elementwise, to_common_type
from app.ops.lowering import Elementwise
from app.ops.public import public
from app.ops.spec import Spec, broadcast
from app.ops.values import Applied, Array, Element, Gradients, OnnxNodes, OnnxResult, OnnxValue, Results, Value


@public(method=True)
@elementwise(result="bool", onnx="Equal")
def equal(x: Array, y: Array) -> Results:
    """x == y, elementwise."""
    return x == y


@public(method=True)
@elementwise(result="bool", onnx=lambda onnx, x, y: onnx.Not(onnx.Equal(x, y)))
def not_equal(x: Array, y: Array) -> Results:
    """x != y, elementwise."""
    return x != y


@public(method=True)
@elementwise(result="bool", onnx="Less")
def less_than(x: Array, y: Array) -> Results:
    """x < y, elementwise."""
    return x < y


@public(method=True)
@elementwise(result="bool", onnx="LessOrEqual")
def less_equal(x: Array, y: Array) -> Results:
    """x <= y, elementwise."""
    return x <= y


@public(method=True)
@elementwise(result="bool", onnx="Greater")
def greater_than(x: Array, y: Array) -> Results:
    """x > y, elementwise."""
    return x > y


@public(method=True)
@elementwise(result="bool", onnx="GreaterOrEqual")
def greater_equal(x: Array, y: Array) -> Results:
    """x >= y, elementwise."""
    return x >= y


@public(method=True)
@elementwise(result="bool", onnx="And")
def logical_and(x: Array, y: Array) -> Results:
    """Logical and, elementwise."""
    return np.logical_and(x, y)


@public(method=True)
@elementwise(result="bool", onnx="Or")
def logical_or(x: Array, y: Array) -> Results:
    """Logical or, elementwise."""
    return np.logical_or(x, y)


@public(method=True)
@elementwise(result="bool", onnx="Xor")
def logical_xor(x: Array, y: Array) -> Results:
    """Logical exclusive or, elementwise."""
    return np.logical_xor(x, y)


@public(method=True)
@elementwise(result="bool", onnx="Not")
def logical_not(x: Array) -> Results:
    """Logical not, elementwise."""
    return np.logical_not(x)


@public(method=True)
@elementwise(result="bool", onnx="IsNaN")
def isnan(x: Array) -> Results:
    """Whether each element is NaN."""
    return np.isnan(x)


@public(method=True)
@elementwise(result="bool", onnx="IsInf")
def isinf(x: Array) -> Results:
    """Whether each element is positive or negative infinity."""
    return np.isinf(x)


@public(method=True)
@elementwise(result="bool", onnx=lambda onnx, x: onnx.Not(onnx.Or(onnx.IsNaN(x), onnx.IsInf(x))))
def isfinite(x: Array) -> Results:
    """Whether each element is finite: neither infinity nor NaN."""
    return np.isfinite(x)


def _is_close_one(x: Element, y: Element, rtol: float, atol: float, equal_nan: bool) -> Element:
    return x == y or bool(abs(x - y) <= atol + rtol * abs(y) < np.inf) or (equal_nan and x != x and y != y)


@public(method=True)
@elementwise(floating=True, result="bool", scalar=_is_close_one)
def isclose(x: Array, y: Array, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Results:
    """Whether two values are close, elementwise: abs(x - y) <= atol + rtol * abs(y)."""
    return np.isclose(x, y, rtol, atol, equal_nan)


@isclose.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, y: OnnxValue, rtol: float, atol: float, equal_nan: bool) -> OnnxResult:
    distance, most = onnx.Abs(x - y), onnx.Abs(y) * rtol + atol
    near = onnx.And(onnx.LessOrEqual(distance, most), onnx.Not(onnx.IsInf(most)))
    near = onnx.Or(onnx.Equal(x, y), near)
    return onnx.Or(near, onnx.And(onnx.IsNaN(x), onnx.IsNaN(y))) if equal_nan else near


def _infer_where(condition: Spec, x: Spec, y: Spec) -> Spec:
    return Spec(broadcast(condition.shape, x.shape, y.shape), x.dtype)


def _prepare_where(values: list[Any]) -> list[Applied]:
    condition, x, y = values
    if hasattr(condition, "dtype") and canonical(condition.dtype) != "bool":
        condition = REGISTRY["cast"](condition, dtype="bool")
    return [condition, *to_common_type([x, y])]


def _choose(condition: Element, x: Element, y: Element) -> Element:
    return x if condition else y


@public()
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
