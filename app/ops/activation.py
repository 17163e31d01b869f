"""Activation functions."""

from __future__ import annotations

import numpy as np

from app.ops.arithmetic import extreme
from app.ops.elementwise import elementwise
from app.ops.logic import where
from app.ops.public import public
from app.ops.values import Array, Gradients, OnnxNodes, OnnxResult, OnnxValue, Results, Value


@public(method=True, in_place=True)
@elementwise(scalar=lambda x: type(x)(0) if x <= 0 else x, onnx="Relu")
def relu(x: Array) -> Results:
    """Rectified linear unit, elementwise: max(x, 0)."""
    return extreme(np.maximum, x, x.dtype.type(0))


@relu.gradient
def _(out: Value, dout: Value) -> Gradients:
    return where(out > 0, dout, 0.0)


@public()
@elementwise(floating=True, scalar=lambda x, slope: x if x > 0 else x * slope)
def leaky_relu(x: Array, *, negative_slope: float = 0.01) -> Results:
    """Leaky ReLU, elementwise: x if x > 0, else negative_slope * x."""
    return np.where(x > 0, x, x * x.dtype.type(negative_slope))


@leaky_relu.gradient
def _(x: Value, dout: Value, negative_slope: float) -> Gradients:
    return where(x > 0, dout, dout * negative_slope)


@leaky_relu.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, negative_slope: float) -> OnnxResult:
    return onnx.LeakyRelu(x, alpha=float(negative_slope))


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Sigmoid")
def sigmoid(x: Array) -> Results:
    """Sigmoid, elementwise: 1 / (1 + exp(-x)), computed with tanh to avoid overflow."""
    return 0.5 * np.tanh(0.5 * x) + 0.5


@sigmoid.gradient
def _(out: Value, dout: Value) -> Gradients:
    return dout * out * (1.0 - out)


@public()
@elementwise(floating=True, scalar=lambda x: (type(x)(0) if x < 0 else x) + np.log1p(np.exp(-abs(x))), onnx="Softplus")
def softplus(x: Array) -> Results:
    """Softplus, elementwise: log(1 + exp(x))."""
    return np.maximum(x, x.dtype.type(0)) + np.log1p(np.exp(-np.abs(x)))


@softplus.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout * sigmoid(x)


@public()
@elementwise(floating=True, onnx=lambda onnx, x: x * onnx.Sigmoid(x))
def silu(x: Array) -> Results:
    """SiLU (swish), elementwise: x * sigmoid(x)."""
    return x * (0.5 * np.tanh(0.5 * x) + 0.5)


@silu.gradient
def _(x: Value, dout: Value) -> Gradients:
    s = sigmoid(x)
    return dout * (s + x * s * (1.0 - s))


@public()
@elementwise(floating=True, scalar=lambda x, alpha: x if x > 0 else alpha * np.expm1(x))
def elu(x: Array, *, alpha: float = 1.0) -> Results:
    """ELU, elementwise: x if x > 0, else alpha * (exp(x) - 1)."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, x.dtype.type(0))))


@elu.gradient
def _(x: Value, out: Value, dout: Value, alpha: float) -> Gradients:
    return where(x > 0, dout, dout * (out + alpha))


@elu.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, alpha: float) -> OnnxResult:
    return onnx.Elu(x, alpha=float(alpha))
