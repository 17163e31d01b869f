"""Elementwise functions of one value: powers, exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from app.ops.definition import REGISTRY, OpDef
from app.ops.elementwise import elementwise
from app.ops.logic import where
from app.ops.public import public
from app.ops.rounding import sign
from app.ops.values import (
    Applied,
    Array,
    Element,
    Gradient,
    GradientRule,
    Gradients,
    Kernel,
    OnnxRule,
    Operand,
    Results,
    Value,
)


@public(method=True, in_place=True)
@elementwise(onnx=lambda onnx, x: x * x, gradient=lambda x, dout: dout * (x + x))
def square(x: Array) -> Results:
    """Square, elementwise."""
    return x * x


def _function(name: str, doc: str, kernel: Kernel, gradient: GradientRule, onnx: str | OnnxRule | None = None) -> OpDef:
    """Declare a public function of one value, whose result is floating."""
    kernel.__name__, kernel.__doc__ = name, f"{doc}."
    declare = elementwise(floating=True, gradient=gradient, onnx=onnx)
    return public(method=True, in_place=True)(declare(kernel))


# fmt: off
exp = _function("exp", "Exponential, elementwise", lambda x: np.exp(x), lambda out, dout: dout * out, "Exp")
log = _function("log", "Natural logarithm, elementwise", lambda x: np.log(x), lambda x, dout: dout / x, "Log")
sqrt = _function("sqrt", "Square root, elementwise", lambda x: np.sqrt(x), lambda out, dout: dout * 0.5 / out, "Sqrt")
rsqrt = _function("rsqrt", "Reciprocal of the square root, elementwise", lambda x: 1.0 / np.sqrt(x),
                  lambda out, dout: dout * -0.5 * out * out * out, lambda onnx, x: onnx.Reciprocal(onnx.Sqrt(x)))
reciprocal = _function("reciprocal", "Reciprocal, elementwise: 1 / x", lambda x: 1.0 / x,
                       lambda out, dout: -dout * out * out, "Reciprocal")
log2 = _function("log2", "Base-2 logarithm, elementwise", lambda x: np.log2(x),
                 lambda x, dout: dout / x / math.log(2.0), lambda onnx, x: onnx.Log(x) / math.log(2.0))
log10 = _function("log10", "Base-10 logarithm, elementwise", lambda x: np.log10(x),
                  lambda x, dout: dout * math.log10(math.e) / x, lambda onnx, x: onnx.Log(x) / math.log(10.0))
log1p = _function("log1p", "log(1 + x), elementwise; accurate for small x", lambda x: np.log1p(x),
                  lambda x, dout: dout / (x + 1.0))
expm1 = _function("expm1", "exp(x) - 1, elementwise; accurate for small x", lambda x: np.expm1(x),
                  lambda x, dout: dout * exp(x))

sin = _function("sin", "Sine, elementwise", lambda x: np.sin(x), lambda x, dout: dout * cos(x), "Sin")
cos: OpDef = _function("cos", "Cosine, elementwise", lambda x: np.cos(x), lambda x, dout: -dout * sin(x), "Cos")
tan = _function("tan", "Tangent, elementwise", lambda x: np.tan(x), lambda out, dout: dout * (out * out + 1.0), "Tan")
asin = _function("asin", "Inverse sine, elementwise", lambda x: np.arcsin(x),
                 lambda x, dout: dout * rsqrt((1.0 - x) * (x + 1.0)), "Asin")
acos = _function("acos", "Inverse cosine, elementwise", lambda x: np.arccos(x),
                 lambda x, dout: -dout * rsqrt((1.0 - x) * (x + 1.0)), "Acos")
atan = _function("atan", "Inverse tangent, elementwise", lambda x: np.arctan(x),
                 lambda x, dout: dout * square(_reciprocal_hypotenuse(x)), "Atan")
sinh = _function("sinh", "Hyperbolic sine, elementwise", lambda x: np.sinh(x), lambda x, dout: dout * cosh(x), "Sinh")
cosh: OpDef = _function("cosh", "Hyperbolic cosine, elementwise", lambda x: np.cosh(x),
                        lambda x, dout: dout * sinh(x), "Cosh")
tanh = _function("tanh", "Hyperbolic tangent, elementwise", lambda x: np.tanh(x),
                 lambda out, dout: dout * (1.0 - out * out), "Tanh")
asinh = _function("asinh", "Inverse hyperbolic sine, elementwise", lambda x: np.arcsinh(x),
                  lambda x, dout: dout * _reciprocal_hypotenuse(x), "Asinh")
acosh = _function("acosh", "Inverse hyperbolic cosine, elementwise", lambda x: np.arccosh(x),
                  lambda x, dout: dout * rsqrt(x - 1.0) * rsqrt(x + 1.0), "Acosh")
atanh = _function("atanh", "Inverse hyperbolic tangent, elementwise", lambda x: np.arctanh(x),
                  lambda x, dout: dout / ((1.0 - x) * (x + 1.0)), "Atanh")
# fmt: on


def _sigmoid_one(x: Element) -> Element:
    e = np.exp(-abs(x))
    return (e if x < 0 else type(x)(1)) / (type(x)(1) + e)


@public(method=True, in_place=True)
@elementwise(floating=True, scalar=_sigmoid_one, onnx="Sigmoid")
def sigmoid(x: Array) -> Results:
    """Sigmoid, elementwise: 1 / (1 + exp(-x)), without overflow and with all digits of results near 0."""
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, x.dtype.type(1)) / (e + x.dtype.type(1))


@sigmoid.gradient
def _(x: Value, out: Value, dout: Value) -> Gradients:
    return dout * out * sigmoid(-x)  # not 1 - out, of which no digit is left where `out` rounds to 1


def _reciprocal_hypotenuse(x: Value) -> Gradient:
    """1 / sqrt(x * x + 1), also where x * x is infinite."""
    far = abs_(x) > float(np.finfo(x.dtype).eps) ** -0.5  # there the 1 makes no difference
    return where(far, 1.0 / abs_(where(far, x, 1.0)), rsqrt(square(where(far, 0.0, x)) + 1.0))


@log1p.in_onnx
def _(onnx: Any, x: Any) -> Any:
    above = x + 1.0
    # the factor x / (above - 1) corrects the rounding of 1 + x
    near = onnx.Where(onnx.Equal(above, 1.0), x, onnx.Log(above) * x / (above - 1.0))
    return onnx.Where(onnx.Less(onnx.Abs(x), 0.5), near, onnx.Log(above))


@expm1.in_onnx
def _(onnx: Any, x: Any) -> Any:
    half = onnx.Tanh(x * 0.5)
    return onnx.Where(onnx.Less(onnx.Abs(x), 0.5), half * 2.0 / (1.0 - half), onnx.Exp(x) - 1.0)


@public("neg", method=True, in_place=True)
@elementwise(numbers=True, onnx="Neg", gradient=lambda dout: -dout)
def negative(x: Array) -> Results:
    """Negative, elementwise: -x."""
    return -x


@public(method=True, in_place=True)
@elementwise(onnx="Abs", gradient=lambda x, dout: dout * sign(x))
def abs_(x: Array) -> Results:
    """Absolute value, elementwise; the gradient at zero is zero."""
    return np.abs(x)


def _slope_of_erf(x: Value, dout: Value) -> Gradients:
    return dout * (exp(-square(x)) * (2.0 / math.sqrt(math.pi)))


@public(method=True, in_place=True)
@elementwise(floating=True, scalar=lambda x: math.erf(x), onnx="Erf", gradient=_slope_of_erf)
def erf(x: Array) -> Results:
    """Error function, elementwise."""
    from scipy import special  # imported here because importing SciPy takes 0.1 s

    return special.erf(x).astype(x.dtype, copy=False)


@public(method=True, in_place=True)
@elementwise(floating=True)
def atan2(x: Array, y: Array) -> Results:
    """Inverse tangent of x / y, elementwise, in the quadrant of the point with ordinate `x` and abscissa `y`."""
    return np.arctan2(x, y)


@atan2.gradient_of("x")
def _(x: Value, y: Value, dout: Value) -> Gradients:
    return dout * _over_square_of_radius(y, x)


@atan2.gradient_of("y")
def _(x: Value, y: Value, dout: Value) -> Gradients:
    return -dout * _over_square_of_radius(x, y)


def _over_square_of_radius(x: Value, y: Value) -> Gradient:
    """x / (x * x + y * y), also where these squares are infinite or 0."""
    is_larger = abs_(x) > abs_(y)
    larger, smaller = where(is_larger, x, y), where(is_larger, y, x)
    larger = where(larger == 0.0, 1.0, larger)  # at the origin, where the gradient is 0 as that of the norm
    ratio = smaller / larger
    return where(is_larger, 1.0, ratio) / (square(ratio) + 1.0) / larger


@atan2.in_onnx
def _(onnx: Any, x: Any, y: Any) -> Any:
    def is_negative(z: Any) -> Any:
        return onnx.Or(onnx.Less(z, 0), onnx.Less(onnx.Reciprocal(z), 0))  # the second for -0.0

    are_infinite, are_zero = onnx.And(onnx.IsInf(x), onnx.IsInf(y)), onnx.And(onnx.Equal(x, 0), onnx.Equal(y, 0))
    ratio = onnx.Where(are_infinite, 1.0, onnx.Where(are_zero, 0.0, onnx.Abs(x / y)))
    angle = onnx.Atan(ratio)
    angle = onnx.Where(is_negative(y), math.pi - angle, angle)
    return onnx.Where(is_negative(x), -angle, angle)


@public(method=True, in_place=True)
def scale(
    x: Value,
    scale: Operand = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
) -> Applied:
    """x * scale + bias, or (x + bias) * scale; `act` names an operator to apply to the result."""
    out = x * scale + bias if bias_after_scale else (x + bias) * scale
    return out if act is None else REGISTRY[act](out)
