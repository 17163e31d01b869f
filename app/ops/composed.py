"""Functions made of other operators: their gradients, compiled code and ONNX nodes are those of these operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from app.ops.broadcasting import broadcast_tensors
from app.ops.joining import stack
from app.ops.logic import isnan, where
from app.ops.norms import norm
from app.ops.public import public
from app.ops.reduction import logsumexp, sum_
from app.ops.rounding import trunc
from app.ops.shaping import reshape, transpose
from app.ops.spec import Axis
from app.ops.values import Applied, Operand, Value

# Elementwise functions


@public(method=True)
def deg2rad(x: Value) -> Applied:
    """Convert degrees to radians, elementwise."""
    return x * (math.pi / 180.0)


@public(method=True)
def rad2deg(x: Value) -> Applied:
    """Convert radians to degrees, elementwise."""
    return x * (180.0 / math.pi)


@public(method=True, in_place=True)
def frac(x: Value) -> Applied:
    """Fractional part, elementwise: x - trunc(x)."""
    return x - trunc(x)


@public(method=True)
def fmax(x: Value, y: Operand) -> Applied:
    """Maximum of two values, elementwise; NaN is ignored if the other value is a number. Of equals, it is the first."""
    return where((x >= y) | isnan(y), x, y)


@public(method=True)
def fmin(x: Value, y: Operand) -> Applied:
    """Minimum of two values, elementwise; NaN is ignored if the other value is a number. Of equals, it is the first."""
    return where((x <= y) | isnan(y), x, y)


@public(method=True)
def logaddexp(x: Value, y: Value) -> Applied:
    """log(exp(x) + exp(y)), elementwise, computed without overflow."""
    return logsumexp(stack(broadcast_tensors([x, y])), axis=0)


@public(method=True, in_place=True)
def lerp(x: Value, y: Value, weight: Operand) -> Applied:
    """Linear interpolation: x + weight * (y - x)."""
    return x + (y - x) * weight


# Order of axes


@public(method=True)
def moveaxis(x: Value, source: int | Sequence[int], destination: int | Sequence[int]) -> Applied:
    """Move axes to other positions; the other axes keep their order."""
    numbered = np.empty(tuple(range(len(x.shape))))  # axis i has size i
    return transpose(x, perm=np.moveaxis(numbered, source, destination).shape)


# Products and distances


@public(method=True)
def outer(x: Value, y: Value) -> Applied:
    """Outer product of two flattened values."""
    return reshape(x, [-1, 1]) * reshape(y, [1, -1])


@public(method=True)
def dist(x: Value, y: Value, p: float = 2.0) -> Applied:
    """p-norm of x - y."""
    return norm(x - y, p)


# Counts


@public(method=True)
def count_nonzero(x: Value, axis: Axis = None, keepdim: bool = False) -> Applied:
    """Number of nonzero elements along the given axes."""
    return sum_(x != 0, axis=axis, keepdim=keepdim)
