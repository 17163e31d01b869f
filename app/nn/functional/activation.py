"""Activation functions: operators, and those that are made of a few."""

from __future__ import annotations

import math
from typing import Any

from app.ops import activation
from app.ops import softmax as softmaxes
from app.ops.dtype import is_float
from app.ops.joining import split
from app.ops.logic import where
from app.ops.math import erf, sigmoid, tanh
from app.ops.rounding import clip
from app.ops.shaping import cast

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softshrink",
    "softsign",
    "swish",
    "tanh",
    "tanhshrink",
    "thresholded_relu",
]

relu = activation.relu
leaky_relu = activation.leaky_relu
elu = activation.elu
softsign = activation.softsign


def softmax(x: Any, axis: int = -1, dtype: Any = None) -> Any:
    """Softmax along an axis: exp(x) / sum(exp(x))."""
    return softmaxes.softmax(x if dtype is None else cast(x, dtype=dtype), axis)


def log_softmax(x: Any, axis: int = -1, dtype: Any = None) -> Any:
    """Logarithm of softmax along an axis, accurate where softmax rounds to 0."""
    return softmaxes.log_softmax(x if dtype is None else cast(x, dtype=dtype), axis)


def silu(x: Any) -> Any:
    """SiLU (swish), elementwise: x * sigmoid(x)."""
    return activation.silu(x)


def swish(x: Any) -> Any:
    """Swish (SiLU), elementwise: x * sigmoid(x)."""
    return activation.silu(x)


def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    """Softplus, elementwise: log(1 + exp(beta * x)) / beta, computed without overflow.

    Where beta * x is above `threshold`, it is x; from 20 on this makes no difference.
    """
    y = activation.softplus(x) if beta == 1 else activation.softplus(x * float(beta)) / float(beta)
    return y if threshold >= 20 else where(x * float(beta) > float(threshold), x, y)


def gelu(x: Any, approximate: Any = False) -> Any:
    """GELU, elementwise: x * Φ(x), with Φ the normal distribution function, or its tanh approximation."""
    if approximate in (True, "tanh"):
        return 0.5 * x * (1.0 + tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + erf(x * math.sqrt(0.5)))


def relu6(x: Any) -> Any:
    """ReLU6, elementwise: min(max(x, 0), 6)."""
    return hardtanh(x, 0.0, 6.0)


def hardtanh(x: Any, min: float = -1.0, max: float = 1.0) -> Any:
    """Hardtanh: clip to the range from `min` to `max`, elementwise. Unlike that of clip, its gradient is 0 at both."""
    if not is_float(x.dtype):
        return clip(x, float(min), float(max))
    return where(x >= float(max), float(max), where(x <= float(min), float(min), x))


def hardsigmoid(x: Any, slope: float = 0.1666667, offset: float = 0.5) -> Any:
    """Hardsigmoid, elementwise: slope * x + offset, clipped to the range from 0 to 1."""
    return hardtanh(x * slope + offset, 0.0, 1.0)


def hardswish(x: Any) -> Any:
    """Hardswish, elementwise: x * min(max(x + 3, 0), 6) / 6."""
    return x * (hardtanh(x + 3.0, 0.0, 6.0) / 6.0)


def hardshrink(x: Any, threshold: float = 0.5) -> Any:
    """Hardshrink, elementwise: x if abs(x) > threshold, else 0."""
    return where((x <= threshold).logical_and(x >= -threshold), 0.0, x)


def softshrink(x: Any, threshold: float = 0.5) -> Any:
    """Softshrink, elementwise: sign(x) * max(abs(x) - threshold, 0)."""
    return x - clip(x, -threshold, threshold)


def tanhshrink(x: Any) -> Any:
    """Tanhshrink, elementwise: x - tanh(x)."""
    return x - tanh(x)


def thresholded_relu(x: Any, threshold: float = 1.0, value: float = 0.0) -> Any:
    """Thresholded ReLU, elementwise: x if x > threshold, else `value`."""
    return where(x <= threshold, float(value), x)


def log_sigmoid(x: Any) -> Any:
    """Logarithm of sigmoid, elementwise: -log(1 + exp(-x)), computed without overflow."""
    return -activation.softplus(-x)


def mish(x: Any) -> Any:
    """Mish, elementwise: x * tanh(softplus(x))."""
    return x * tanh(activation.softplus(x))


def selu(x: Any, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772) -> Any:
    """SELU, elementwise: scale * elu(x, alpha)."""
    return activation.elu(x, alpha=alpha) * scale


def celu(x: Any, alpha: float = 1.0) -> Any:
    """CELU, elementwise: x if x > 0, else alpha * (exp(x / alpha) - 1)."""
    return activation.elu(x / alpha) * alpha


def glu(x: Any, axis: int = -1) -> Any:
    """Gated linear unit: the first half along an axis times the sigmoid of the second half."""
    value, gate = split(x, 2, axis)
    return value * sigmoid(gate)
