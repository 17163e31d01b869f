"""Arithmetic on two values, with broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.ops.creation import zeros_like
from app.ops.elementwise import elementwise
from app.ops.logic import logical_and, logical_not, logical_or, where
from app.ops.math import abs_, log
from app.ops.public import public
from app.ops.values import Applied, Array, Element, Gradient, Gradients, Results, Value


@public(method=True, in_place=True)
@elementwise(onnx="Add", gradient=lambda dout: (dout, dout))
def add(x: Array, y: Array) -> Results:
    """Sum, elementwise: x + y."""
    return x + y


@public(method=True, in_place=True)
@elementwise(numbers=True, onnx="Sub")
def subtract(x: Array, y: Array) -> Results:
    """Difference, elementwise: x - y."""
    return x - y


@subtract.gradient_of("x")
def _(dout: Value) -> Gradients:
    return dout


@subtract.gradient_of("y")
def _(dout: Value) -> Gradients:
    return -dout


@public(method=True, in_place=True)
@elementwise(onnx="Mul")
def multiply(x: Array, y: Array) -> Results:
    """Product, elementwise: x * y."""
    return x * y


@multiply.gradient_of("x")
def _(y: Value, dout: Value) -> Gradients:
    return dout * y


@multiply.gradient_of("y")
def _(x: Value, dout: Value) -> Gradients:
    return dout * x


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Div")
def divide(x: Array, y: Array) -> Results:
    """Quotient, elementwise: x / y; integers are divided as floats."""
    return x / y


@divide.gradient_of("x")
def _(y: Value, dout: Value) -> Gradients:
    return dout / y


@divide.gradient_of("y")
def _(y: Value, out: Value, dout: Value) -> Gradients:
    return -dout * out / y


def _integer_quotient(x: Element, y: Element) -> Element:
    # dividing the smallest integer by -1 overflows, and processors differ in what they do then
    return -np.int64(x) if y == -1 else np.int64(x) // np.int64(y)


@public(method=True, in_place=True)
@elementwise(
    numbers=True,
    integers=_integer_quotient,
    gradient=lambda dout: (zeros_like(dout), zeros_like(dout)),
)
def floor_divide(x: Array, y: Array) -> Results:
    """Quotient rounded toward negative infinity, elementwise."""
    return x // y


def _rest_in_onnx(onnx: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """What a division that rounds towards 0 leaves, and whether that differs from the remainder."""
    rest = onnx.Mod(x, y, fmod=1)  # it has the sign of x
    return rest, onnx.And(onnx.Not(onnx.Equal(rest, 0)), onnx.Xor(onnx.Less(rest, 0), onnx.Less(y, 0)))


@floor_divide.in_onnx
def _(onnx: Any, x: Any, y: Any) -> Any:
    rest, turned = _rest_in_onnx(onnx, x, y)
    whole = onnx.Round((x - rest) / y) if x.floating else x / y
    quotient = whole - onnx.Cast(turned, to=x.dtype)
    return onnx.Where(onnx.Equal(y, 0), x / y, quotient) if x.floating else quotient


@public("mod", "floor_mod", method=True, in_place=True)
@elementwise(numbers=True)
def remainder(x: Array, y: Array) -> Results:
    """Remainder of `floor_divide`, elementwise; it has the sign of the divisor."""
    return x % y


@remainder.gradient_of("x")
def _(dout: Value) -> Gradients:
    return dout


@remainder.gradient_of("y")
def _(x: Value, y: Value, dout: Value) -> Gradients:
    return -dout * floor_divide(x, y)


@remainder.in_onnx
def _(onnx: Any, x: Any, y: Any) -> Any:
    if not x.floating:
        return onnx.Mod(x, y)
    rest, turned = _rest_in_onnx(onnx, x, y)
    return onnx.Where(turned, rest + y, rest)


def _integer_power(x: Element, y: Element) -> Element:
    if y < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    result, factor, left = np.int64(1), np.int64(x), np.int64(y)
    while left > 0:
        if left & 1:
            result = result * factor
        factor = factor * factor
        left = left >> 1
    return result


@public(method=True, in_place=True)
@elementwise(numbers=True, integers=_integer_power, raises=True, onnx="Pow")
def pow_(x: Array, y: Array) -> Results:
    """Power, elementwise: x ** y."""
    return x**y


@pow_.gradient_of("x")
def _(x: Value, y: Value, dout: Value) -> Gradients:
    # y * x**(y-1), without 0 * inf or 0 * NaN at y == 0; for other x it is 0 there, too, but has a slope along y
    vanishes = logical_and(y == 0, logical_not(abs_(x) >= float(np.finfo(x.dtype).tiny)))
    return dout * where(vanishes, 0.0, y * x ** where(vanishes, 1.0, y - 1))


@pow_.gradient_of("y")
def _(x: Value, y: Value, out: Value, dout: Value) -> Gradients:
    # out * log(x), but 0 if out is 0, where log(x) may be infinite, and for 0 ** 0
    vanishes = logical_or(out == 0, logical_and(x == 0, y == 0))
    return dout * out * log(where(vanishes, 1.0, x))


@public(method=True, in_place=True)
@elementwise(scalar=lambda x, y: np.maximum(x, y), onnx="Max")
def maximum(x: Array, y: Array) -> Results:
    """Maximum of two values, elementwise; equal elements share the gradient equally. NaN propagates."""
    return np.maximum(x, y)


@public(method=True, in_place=True)
@elementwise(scalar=lambda x, y: np.minimum(x, y), onnx="Min")
def minimum(x: Array, y: Array) -> Results:
    """Minimum of two values, elementwise; equal elements share the gradient equally. NaN propagates."""
    return np.minimum(x, y)


@maximum.gradient_of("x")
@minimum.gradient_of("x")
def _(x: Value, out: Value, y: Value, dout: Value) -> Gradients:
    return _share(x, y, out, dout)


@maximum.gradient_of("y")
@minimum.gradient_of("y")
def _(x: Value, out: Value, y: Value, dout: Value) -> Gradients:
    return _share(y, x, out, dout)


def _share(own: Value, other: Value, out: Value, dout: Value) -> Gradient:
    return where(own == other, dout * 0.5, where(own == out, dout, 0.0))


@public()
def add_n(inputs: Value | Sequence[Value]) -> Applied:
    """Sum of a list of values."""
    values = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    total: Applied = values[0]
    for value in values[1:]:
        total = total + value
    return total
