"""Activation functions."""

from __future__ import annotations

import numpy as np

from app.ops.elementwise import elementwise
from app.ops.logic import where
from app.ops.math import abs_, exp, sigmoid, square
from app.ops.public import public
from app.ops.values import Array, Element, Gradients, Results, Value


@public(method=True, in_place=True)
@elementwise(
    scalar=lambda x: type(x)(0) if x <= 0 else x, onnx="Relu", gradient=lambda out, dout: where(out > 0, dout, 0.0)
)
def relu(x: Array) -> Results:
    """Rectified linear unit, elementwise: max(x, 0)."""
    return np.maximum(x, x.dtype.type(0))


@public()
@elementwise(
    floating=True,
    scalar=lambda x, slope: x if x > 0 else x * slope,
    gradient=lambda x, dout, negative_slope: where(x > 0, dout, dout * negative_slope),
    onnx=lambda onnx, x, negative_slope: onnx.LeakyRelu(x, alpha=float(negative_slope)),
)
def leaky_relu(x: Array, *, negative_slope: float = 0.01) -> Results:
    """Leaky ReLU, elementwise: x if x > 0, else negative_slope * x."""
    return np.where(x > 0, x, x * x.dtype.type(negative_slope))


@public()
@elementwise(
    floating=True,
    scalar=lambda x: (type(x)(0) if x < 0 else x) + np.log1p(np.exp(-abs(x))),
    onnx="Softplus",
    gradient=lambda x, dout: dout * sigmoid(x),
)
def softplus(x: Array) -> Results:
    """Softplus, elementwise: log(1 + exp(x))."""
    return np.maximum(x, x.dtype.type(0)) + np.log1p(np.exp(-np.abs(x)))


def _silu_one(x: Element) -> Element:
    e = np.exp(-abs(x))
    return (x * e if x < 0 else x) / (type(x)(1) + e)


@public()
@elementwise(floating=True, scalar=_silu_one, onnx=lambda onnx, x: x * onnx.Sigmoid(x))
def silu(x: Array) -> Results:
    """SiLU (swish), elementwise: x * sigmoid(x)."""
    return x * sigmoid.kernel(x)


@silu.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout * sigmoid(x) * (1.0 + x * sigmoid(-x))


@public()
@elementwise(
    floating=True,
    scalar=lambda x, alpha: x if x > 0 else alpha * np.expm1(x),
    gradient=lambda x, dout, alpha: where(x > 0, dout, dout * alpha * exp(where(x > 0, 0.0, x))),
    onnx=lambda onnx, x, alpha: onnx.Elu(x, alpha=float(alpha)),
)
def elu(x: Array, *, alpha: float = 1.0) -> Results:
    """ELU, elementwise: x if x > 0, else alpha * (exp(x) - 1)."""
    above = x > 0
    return np.where(above, x, alpha * np.expm1(np.where(above, x.dtype.type(0), x)))


@elementwise(
    floating=True,
    scalar=lambda x: x / (abs(x) + type(x)(1)),
    onnx=lambda onnx, x: x / (onnx.Abs(x) + 1.0),
    gradient=lambda x, dout: dout * square(1.0 / (abs_(x) + 1.0)),
)
def softsign(x: Array) -> Results:
    """Softsign, elementwise: x / (1 + abs(x))."""
    return x / (np.abs(x) + x.dtype.type(1))
