"""Trigonometric and hyperbolic functions, and their inverses."""

from __future__ import annotations

import math

import numpy as np

from app.ops.elementwise import elementwise
from app.ops.math import rsqrt, square
from app.ops.public import public
from app.ops.values import Applied, Array, Gradients, OnnxNodes, OnnxResult, OnnxValue, Results, Value


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Sin")
def sin(x: Array) -> Results:
    """Sine, elementwise."""
    return np.sin(x)


@sin.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout * cos(x)


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Cos")
def cos(x: Array) -> Results:
    """Cosine, elementwise."""
    return np.cos(x)


@cos.gradient
def _(x: Value, dout: Value) -> Gradients:
    return -dout * sin(x)


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Tanh")
def tanh(x: Array) -> Results:
    """Hyperbolic tangent, elementwise."""
    return np.tanh(x)


@tanh.gradient
def _(out: Value, dout: Value) -> Gradients:
    return dout * (1.0 - out * out)


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Tan")
def tan(x: Array) -> Results:
    """Tangent, elementwise."""
    return np.tan(x)


@tan.gradient
def _(out: Value, dout: Value) -> Gradients:
    return dout * (out * out + 1.0)


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Asin")
def asin(x: Array) -> Results:
    """Inverse sine, elementwise."""
    return np.arcsin(x)


@asin.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout * rsqrt(1.0 - square(x))


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Acos")
def acos(x: Array) -> Results:
    """Inverse cosine, elementwise."""
    return np.arccos(x)


@acos.gradient
def _(x: Value, dout: Value) -> Gradients:
    return -dout * rsqrt(1.0 - square(x))


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Atan")
def atan(x: Array) -> Results:
    """Inverse tangent, elementwise."""
    return np.arctan(x)


@atan.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout / (square(x) + 1.0)


@public(method=True, in_place=True)
@elementwise(floating=True)
def atan2(x: Array, y: Array) -> Results:
    """Inverse tangent of x / y, elementwise, in the quadrant of the point with ordinate `x` and abscissa `y`."""
    return np.arctan2(x, y)


@atan2.gradient_of("x")
def _(x: Value, y: Value, dout: Value) -> Gradients:
    return dout * y / (square(x) + square(y))


@atan2.gradient_of("y")
def _(x: Value, y: Value, dout: Value) -> Gradients:
    return -dout * x / (square(x) + square(y))


@atan2.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, y: OnnxValue) -> OnnxResult:
    angle, below = onnx.Atan(x / y), onnx.Less(x, 0)
    left = onnx.Where(below, angle - math.pi, angle + math.pi)
    upright = onnx.Sign(x) * (math.pi / 2)
    return onnx.Where(onnx.Less(0, y), angle, onnx.Where(onnx.Less(y, 0), left, upright))


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Sinh")
def sinh(x: Array) -> Results:
    """Hyperbolic sine, elementwise."""
    return np.sinh(x)


@sinh.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout * cosh(x)


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Cosh")
def cosh(x: Array) -> Results:
    """Hyperbolic cosine, elementwise."""
    return np.cosh(x)


@cosh.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout * sinh(x)


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Asinh")
def asinh(x: Array) -> Results:
    """Inverse hyperbolic sine, elementwise."""
    return np.arcsinh(x)


@asinh.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout * rsqrt(square(x) + 1.0)


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Acosh")
def acosh(x: Array) -> Results:
    """Inverse hyperbolic cosine, elementwise."""
    return np.arccosh(x)


@acosh.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout * rsqrt(square(x) - 1.0)


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Atanh")
def atanh(x: Array) -> Results:
    """Inverse hyperbolic tangent, elementwise."""
    return np.arctanh(x)


@atanh.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout / (1.0 - square(x))


@public(method=True)
def deg2rad(x: Value, name: str | None = None) -> Applied:
    """Convert degrees to radians, elementwise."""
    return x * (math.pi / 180.0)


@public(method=True)
def rad2deg(x: Value, name: str | None = None) -> Applied:
    """Convert radians to degrees, elementwise."""
    return x * (180.0 / math.pi)
