"""Functions made of other operators: their gradients, compiled code and ONNX nodes are those of these operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from app.errors import ShapeError
from app.ops.arithmetic import maximum, minimum
from app.ops.creation import assign, ones_like, zeros_like
from app.ops.dtype import canonical, is_float
from app.ops.gathering import gather
from app.ops.linear import matmul
from app.ops.logic import isnan, where
from app.ops.public import public
from app.ops.scan import cumsum
from app.ops.shaping import reshape, reshape_like, transpose
from app.ops.spec import UNKNOWN, Axis, normal_axis
from app.ops.values import Applied, Operand, Value

# Elementwise functions


@public(method=True, in_place=True)
def nan_to_num(
    x: Value, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, name: str | None = None
) -> Applied:
    """Replace NaN and infinities by numbers, elementwise; infinities by the largest finite numbers by default."""
    if not is_float(x.dtype):
        return assign(x)
    largest = float(np.finfo(canonical(x.dtype)).max)
    finite = where(x == math.inf, largest if posinf is None else float(posinf), x)
    return where(isnan(x), float(nan), where(x == -math.inf, -largest if neginf is None else float(neginf), finite))


@public(method=True)
def fmax(x: Value, y: Operand, name: str | None = None) -> Applied:
    """Maximum of two values, elementwise; NaN is ignored if the other value is a number."""
    return where(isnan(x), y, where(isnan(y), x, maximum(x, y)))


@public(method=True)
def fmin(x: Value, y: Operand, name: str | None = None) -> Applied:
    """Minimum of two values, elementwise; NaN is ignored if the other value is a number."""
    return where(isnan(x), y, where(isnan(y), x, minimum(x, y)))


@public(method=True, in_place=True)
def lerp(x: Value, y: Value, weight: Operand, name: str | None = None) -> Applied:
    """Linear interpolation: x + weight * (y - x)."""
    return x + (y - x) * weight


# Order of axes and elements


@public(method=True)
def moveaxis(
    x: Value, source: int | Sequence[int], destination: int | Sequence[int], name: str | None = None
) -> Applied:
    """Move axes to other positions; the other axes keep their order."""
    numbered = np.empty(tuple(range(len(x.shape))))  # axis i has size i
    return transpose(x, perm=np.moveaxis(numbered, source, destination).shape)


@public(method=True)
def roll(x: Value, shifts: int | Sequence[int], axis: Axis = None, name: str | None = None) -> Applied:
    """Roll elements along the given axes, or in the flattened value; those shifted out re-enter at the other end."""
    if axis is None:
        return reshape_like(roll(reshape(x, [-1]), shifts, 0), x)
    for shift, along in np.broadcast(shifts, axis):
        size = x.shape[normal_axis(int(along), len(x.shape))]
        if size == UNKNOWN:
            raise ShapeError(f"roll: the size of axis {along} must be known, found shape {list(x.shape)}")
        x = gather(x, np.roll(np.arange(size), shift), axis=int(along))
    return x


# Triangles


def _places(x: Value, axis: int) -> Applied:
    """The index of each element along an axis."""
    return cumsum(ones_like(x, "int64"), axis=axis)


@public(method=True, in_place=True)
def tril(x: Value, diagonal: int = 0, name: str | None = None) -> Applied:
    """Lower triangle of matrices; elements above a diagonal are zero."""
    return where(_places(x, -1) <= _places(x, -2) + diagonal, x, zeros_like(x))


@public(method=True, in_place=True)
def triu(x: Value, diagonal: int = 0, name: str | None = None) -> Applied:
    """Upper triangle of matrices; elements below a diagonal are zero."""
    return where(_places(x, -1) >= _places(x, -2) + diagonal, x, zeros_like(x))


# Products


@public(method=True, in_place=True)
def addmm(input: Value, x: Value, y: Value, beta: float = 1.0, alpha: float = 1.0, name: str | None = None) -> Applied:
    """beta * input + alpha * x @ y."""
    return input * beta + matmul(x, y) * alpha


@public(method=True)
def outer(x: Value, y: Value, name: str | None = None) -> Applied:
    """Outer product of two flattened values."""
    return reshape(x, [-1, 1]) * reshape(y, [1, -1])
