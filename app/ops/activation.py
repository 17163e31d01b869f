"""Activation functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.arithmetic import extreme
from app.ops.elementwise import elementwise
from app.ops.logic import where
from app.ops.public import public


@public(method=True, in_place=True)
@elementwise(scalar=lambda x: type(x)(0) if x <= 0 else x, onnx="Relu")
def relu(x: Any) -> Any:
    """The value where it is above zero, else zero."""
    return extreme(np.maximum, x, x.dtype.type(0))


@relu.gradient
def _(out: Any, dout: Any) -> Any:
    return where(out > 0, dout, 0.0)


@public()
@elementwise(floating=True, scalar=lambda x, slope: x if x > 0 else x * slope)
def leaky_relu(x: Any, *, negative_slope: float = 0.01) -> Any:
    """The value where it is above zero, else a small part of it."""
    return np.where(x > 0, x, x * x.dtype.type(negative_slope))


@leaky_relu.gradient
def _(x: Any, dout: Any, negative_slope: float) -> Any:
    return where(x > 0, dout, dout * negative_slope)


@leaky_relu.in_onnx
def _(onnx: Any, x: Any, negative_slope: float) -> Any:
    return onnx.LeakyRelu(x, alpha=float(negative_slope))


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Sigmoid")
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), through tanh, which does not overflow."""
    return 0.5 * np.tanh(0.5 * x) + 0.5


@sigmoid.gradient
def _(out: Any, dout: Any) -> Any:
    return dout * out * (1.0 - out)


@public()
@elementwise(floating=True, scalar=lambda x: (type(x)(0) if x < 0 else x) + np.log1p(np.exp(-abs(x))), onnx="Softplus")
def softplus(x: Any) -> Any:
    """log(1 + exp(x)), a smooth relu."""
    return np.maximum(x, x.dtype.type(0)) + np.log1p(np.exp(-np.abs(x)))


@softplus.gradient
def _(x: Any, dout: Any) -> Any:
    return dout * sigmoid(x)


@public()
@elementwise(floating=True, onnx=lambda onnx, x: x * onnx.Sigmoid(x))
def silu(x: Any) -> Any:
    """x * sigmoid(x), also called swish."""
    return x * (0.5 * np.tanh(0.5 * x) + 0.5)


@silu.gradient
def _(x: Any, dout: Any) -> Any:
    s = sigmoid(x)
    return dout * (s + x * s * (1.0 - s))


@public()
@elementwise(floating=True, scalar=lambda x, alpha: x if x > 0 else alpha * np.expm1(x))
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    """The value where it is above zero, else alpha * (exp(x) - 1)."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, x.dtype.type(0))))


@elu.gradient
def _(x: Any, out: Any, dout: Any, alpha: float) -> Any:
    return where(x > 0, dout, dout * (out + alpha))


@elu.in_onnx
def _(onnx: Any, x: Any, alpha: float) -> Any:
    return onnx.Elu(x, alpha=float(alpha))
