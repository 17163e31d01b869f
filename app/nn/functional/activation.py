"""Activation functions: operators, and those that are made of a few."""

from __future__ import annotations

import math
from typing import Any

from app.ops import activation
from app.ops import softmax as softmaxes
from app.ops.joining import split
from app.ops.logic import where
from app.ops.math import erf, tanh
from app.ops.rounding import clip, sign
from app.ops.shaping import cast, reshape

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
    "prelu",
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
sigmoid = activation.sigmoid
elu = activation.elu


def softmax(x: Any, axis: int = -1, dtype: Any = None, name: str | None = None) -> Any:
    """exp(x), normalised to sum 1 along an axis."""
    return softmaxes.softmax(x if dtype is None else cast(x, dtype=dtype), axis)


def log_softmax(x: Any, axis: int = -1, dtype: Any = None, name: str | None = None) -> Any:
    """The logarithm of softmax."""
    return softmaxes.log_softmax(x if dtype is None else cast(x, dtype=dtype), axis)


def silu(x: Any, inplace: bool = False, name: str | None = None) -> Any:
    """`x * sigmoid(x)`."""
    return activation.silu(x)


def swish(x: Any, name: str | None = None) -> Any:
    """`x * sigmoid(x)`."""
    return activation.silu(x)


def softplus(x: Any, beta: float = 1, threshold: float = 20, name: str | None = None) -> Any:
    """`log(1 + exp(beta * x)) / beta`; this does not overflow, so above the threshold there is no other formula."""
    return activation.softplus(x) if beta == 1 else activation.softplus(x * float(beta)) / float(beta)


def gelu(x: Any, approximate: Any = False, name: str | None = None) -> Any:
    """x times the cumulative distribution function of the normal distribution, or its approximation by tanh."""
    if approximate in (True, "tanh"):
        return 0.5 * x * (1.0 + tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + erf(x * math.sqrt(0.5)))


def relu6(x: Any, name: str | None = None) -> Any:
    """The value clipped to the range from 0 to 6."""
    return clip(x, 0.0, 6.0)


def hardtanh(x: Any, min: float = -1.0, max: float = 1.0, name: str | None = None) -> Any:
    """The value clipped to the range from `min` to `max`."""
    return clip(x, float(min), float(max))


def hardsigmoid(x: Any, slope: float = 0.1666667, offset: float = 0.5, name: str | None = None) -> Any:
    """`slope * x + offset`, clipped to the range from 0 to 1."""
    return clip(x * slope + offset, 0.0, 1.0)


def hardswish(x: Any, name: str | None = None) -> Any:
    """`x * clip(x + 3, 0, 6) / 6`."""
    return x * clip(x + 3.0, 0.0, 6.0) / 6.0


def hardshrink(x: Any, threshold: float = 0.5, name: str | None = None) -> Any:
    """The value where its absolute value exceeds the threshold, else 0."""
    return where((x > threshold).logical_or(x < -threshold), x, 0.0)


def softshrink(x: Any, threshold: float = 0.5, name: str | None = None) -> Any:
    """The value moved towards 0 by the threshold, but not past 0."""
    return x - clip(x, -threshold, threshold)


def tanhshrink(x: Any, name: str | None = None) -> Any:
    """`x - tanh(x)`."""
    return x - tanh(x)


def thresholded_relu(x: Any, threshold: float = 1.0, value: float = 0.0, name: str | None = None) -> Any:
    """The value where it exceeds the threshold, else `value`."""
    return where(x > threshold, x, float(value))


def softsign(x: Any, name: str | None = None) -> Any:
    """`x / (1 + |x|)`."""
    return x / (x * sign(x) + 1.0)


def log_sigmoid(x: Any, name: str | None = None) -> Any:
    """The logarithm of sigmoid."""
    return -activation.softplus(-x)


def mish(x: Any, name: str | None = None) -> Any:
    """`x * tanh(softplus(x))`."""
    return x * tanh(activation.softplus(x))


def selu(x: Any, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772, name: str | None = None) -> Any:
    """A scaled elu, which keeps mean and variance through many layers."""
    return activation.elu(x, alpha=alpha) * scale


def celu(x: Any, alpha: float = 1.0, name: str | None = None) -> Any:
    """The value where it is positive, else `alpha * (exp(x / alpha) - 1)`."""
    return activation.elu(x / alpha) * alpha


def prelu(x: Any, weight: Any, data_format: str = "NCHW", name: str | None = None) -> Any:
    """The value where it is positive, else the value times a weight: one for all, or one for each channel."""
    channels = weight.shape[0] if weight.shape else 1
    if channels > 1:
        axis = len(x.shape) - 1 if data_format.endswith("C") else 1
        weight = reshape(weight, [-1 if a == axis else 1 for a in range(len(x.shape))])
    return where(x > 0, x, x * weight)


def glu(x: Any, axis: int = -1, name: str | None = None) -> Any:
    """The first half along an axis times the sigmoid of the second half."""
    value, gate = split(x, 2, axis)
    return value * activation.sigmoid(gate)
