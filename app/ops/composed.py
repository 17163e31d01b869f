"""Functions made of other operators: their gradients, compiled code and ONNX nodes are those of these operators."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from app.errors import OperatorError, ShapeError
from app.ops.arithmetic import maximum
from app.ops.broadcasting import broadcast_tensors, expand
from app.ops.creation import assign, full_like, ones_like, zeros_like
from app.ops.dtype import canonical, is_float
from app.ops.gathering import from_start, gather, take_along_axis
from app.ops.joining import bordered, concat, stack
from app.ops.linear import matmul
from app.ops.logic import isfinite, isnan, where
from app.ops.math import abs_, log, sqrt, square
from app.ops.norms import norm
from app.ops.public import public
from app.ops.reduction import all_, logsumexp, sum_
from app.ops.rounding import clip, trunc
from app.ops.scan import cumsum
from app.ops.shaping import flatten, reshape, reshape_like, transpose, unsqueeze
from app.ops.spec import UNKNOWN, Axis, broadcast, normal_axis
from app.ops.values import Applied, Operand, Value


def _known_size(x: Value, axis: int, name: str) -> int:
    if not x.shape or x.shape[normal_axis(axis, len(x.shape))] == UNKNOWN:
        raise ShapeError(f"{name}: the size of axis {axis} must be known, found shape {list(x.shape)}")
    return int(x.shape[axis])


# Elementwise functions


@public(method=True)
def deg2rad(x: Value, name: str | None = None) -> Applied:
    """Convert degrees to radians, elementwise."""
    return x * (math.pi / 180.0)


@public(method=True)
def rad2deg(x: Value, name: str | None = None) -> Applied:
    """Convert radians to degrees, elementwise."""
    return x * (180.0 / math.pi)


@public(method=True, in_place=True)
def frac(x: Value, name: str | None = None) -> Applied:
    """Fractional part, elementwise: x - trunc(x)."""
    return x - trunc(x)


@public(method=True, in_place=True)
def logit(x: Value, eps: float | None = None, name: str | None = None) -> Applied:
    """log(x / (1 - x)), elementwise; with `eps`, x is clipped to the range from eps to 1 - eps first."""
    clipped = x if eps is None else clip(x, min=eps, max=1.0 - eps)
    return log(clipped / (1.0 - clipped))


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
    """Maximum of two values, elementwise; NaN is ignored if the other value is a number. Of equals, it is the first."""
    return where((x >= y) | isnan(y), x, y)


@public(method=True)
def fmin(x: Value, y: Operand, name: str | None = None) -> Applied:
    """Minimum of two values, elementwise; NaN is ignored if the other value is a number. Of equals, it is the first."""
    return where((x <= y) | isnan(y), x, y)


@public(method=True, in_place=True)
def hypot(x: Value, y: Value, name: str | None = None) -> Applied:
    """sqrt(x * x + y * y), elementwise, computed without overflow."""
    largest = maximum(abs_(x), abs_(y))
    scale = where((largest > 0) & isfinite(largest), largest, 1.0)
    return scale * sqrt(square(x / scale) + square(y / scale))


@public(method=True)
def logaddexp(x: Value, y: Value, name: str | None = None) -> Applied:
    """log(exp(x) + exp(y)), elementwise, computed without overflow."""
    return logsumexp(stack(broadcast_tensors([x, y])), axis=0)


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
    if np.size(shifts) != np.size(axis):
        raise ShapeError(f"roll: expected one shift for each axis, found {shifts} for {axis}")
    for shift, along in np.broadcast(shifts, axis):
        places = np.arange(_known_size(x, int(along), "roll"))
        x = gather(x, np.roll(places, shift), axis=int(along))
    return x


@public(method=True)
def repeat_interleave(x: Value, repeats: int, axis: int | None = None, name: str | None = None) -> Applied:
    """Repeat each slice along an axis, or each element of the flattened value, a number of times."""
    if not isinstance(repeats, (int, np.integer)):
        raise OperatorError(
            f"repeat_interleave: repeats must be one number, found {repeats!r}; opsmith.gather repeats each"
        )
    if repeats < 0:
        raise OperatorError(f"repeat_interleave: repeats cannot be negative, found {repeats}")
    x, along = (reshape(x, [-1]), 0) if axis is None else (x, normal_axis(axis, len(x.shape)))
    shape = [*[-1] * (along + 1), int(repeats), *[-1] * (len(x.shape) - along - 1)]
    return flatten(expand(unsqueeze(x, axis=along + 1), shape), along, along + 1)


@public()
def hstack(x: Iterable[Value], name: str | None = None) -> Applied:
    """Concatenate values along the second axis, or along the first if they have only one."""
    values = [v if v.shape else reshape(v, [1]) for v in x]
    return concat(values, axis=min(len(values[0].shape) - 1, 1))


@public("row_stack")
def vstack(x: Iterable[Value], name: str | None = None) -> Applied:
    """Concatenate values along the first axis; vectors become rows."""
    return concat([v if len(v.shape) > 1 else reshape(v, [1, -1]) for v in x], axis=0)


# Elements by indices


@public(method=True)
def take(x: Value, index: Value, mode: str = "raise", name: str | None = None) -> Applied:
    """Elements of the flattened value, by an array of indices."""
    if mode != "raise":
        raise OperatorError(
            f"take: mode must be 'raise', found {mode!r}; use opsmith.remainder or opsmith.clip on the index"
        )
    return gather(reshape(x, [-1]), index)


@public(method=True)
def index_sample(x: Value, index: Value, name: str | None = None) -> Applied:
    """Elements of each row, by the indices in the same row of `index`."""
    return take_along_axis(x, from_start(index), axis=1)


@public(method=True)
def gather_nd(x: Value, index: Value, name: str | None = None) -> Applied:
    """Parts of `x`; the last axis of `index` has their indices along the first axes of `x`."""
    return x[tuple(index[..., k] for k in range(_known_size(index, -1, "gather_nd")))]


# Triangles and diagonals


def _places(x: Value, axis: int) -> Applied:
    """The index of each element along an axis."""
    return cumsum(ones_like(x, "int64"), axis=axis)


def _check_matrices(x: Value, name: str) -> None:
    if len(x.shape) < 2:
        raise ShapeError(f"{name} needs matrices, found shape {list(x.shape)}")


@public(method=True, in_place=True)
def tril(x: Value, diagonal: int = 0, name: str | None = None) -> Applied:
    """Lower triangle of matrices; elements above a diagonal are zero."""
    _check_matrices(x, "tril")
    return where(_places(x, -1) <= _places(x, -2) + diagonal, x, zeros_like(x))


@public(method=True, in_place=True)
def triu(x: Value, diagonal: int = 0, name: str | None = None) -> Applied:
    """Upper triangle of matrices; elements below a diagonal are zero."""
    _check_matrices(x, "triu")
    return where(_places(x, -1) >= _places(x, -2) + diagonal, x, zeros_like(x))


@public(method=True)
def diagonal(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Applied:
    """Diagonal along two axes, as the last axis of the result."""
    rows, columns = (_known_size(x, axis, "diagonal") for axis in (axis1, axis2))
    places = np.arange(max(-offset, 0), max(-offset, 0, min(rows, columns - offset)))
    return moveaxis(x, [axis1, axis2], [-2, -1])[..., places, places + offset]


@public(method=True)
def diag(x: Value, offset: int = 0, padding_value: float = 0, name: str | None = None) -> Applied:
    """Matrix with a vector on a diagonal, or diagonal of a matrix."""
    if len(x.shape) == 2:
        return diagonal(x, offset)
    if len(x.shape) != 1:
        raise ShapeError(f"diag needs a vector or a matrix, found shape {list(x.shape)}")
    matrix = where(unsqueeze(_places(x, 0), axis=1) == _places(x, 0), x, full_like(x, fill_value=padding_value))
    before, after = (max(-offset, 0), max(offset, 0)), (max(offset, 0), max(-offset, 0))
    return bordered(matrix, widths=(before, after), value=padding_value)


@public(method=True)
def trace(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Applied:
    """Sum of a diagonal."""
    return sum_(diagonal(x, offset, axis1, axis2), axis=-1)


# Products and distances


def check_ranks(where: str, *ranked: tuple[int, Value]) -> None:
    """Refuse a value with another number of axes than the one beside it."""
    for rank, value in ranked:
        if len(value.shape) != rank:
            raise ShapeError(
                f"{where} needs a value with {rank} axes, found shape {list(value.shape)}; use opsmith.matmul"
            )


@public(method=True)
def mv(x: Value, vec: Value, name: str | None = None) -> Applied:
    """Product of a matrix and a vector."""
    check_ranks("mv", (2, x), (1, vec))
    return matmul(x, vec)


@public(method=True, in_place=True)
def addmm(input: Value, x: Value, y: Value, beta: float = 1.0, alpha: float = 1.0, name: str | None = None) -> Applied:
    """beta * input + alpha * x @ y."""
    check_ranks("addmm", (2, x), (2, y))
    product = matmul(x, y)
    sizes = broadcast(input.shape, product.shape)
    if UNKNOWN not in (*sizes, *product.shape) and sizes != tuple(product.shape):
        raise ShapeError(f"addmm: shape {list(input.shape)} does not broadcast to {list(product.shape)} of the product")
    return input * beta + product * alpha


@public(method=True)
def inner(x: Value, y: Value, name: str | None = None) -> Applied:
    """Sum of products over the last axes of two values."""
    if not x.shape or not y.shape:
        return x * y
    product = matmul(reshape(x, [-1, x.shape[-1]]), reshape(y, [-1, y.shape[-1]]), transpose_y=True)
    return reshape(product, [*x.shape[:-1], *y.shape[:-1]])


@public(method=True)
def outer(x: Value, y: Value, name: str | None = None) -> Applied:
    """Outer product of two flattened values."""
    return reshape(x, [-1, 1]) * reshape(y, [1, -1])


@public(method=True)
def dist(x: Value, y: Value, p: float = 2.0, name: str | None = None) -> Applied:
    """p-norm of x - y."""
    return norm(x - y, p)


# Counts and comparisons of whole values


@public(method=True)
def count_nonzero(x: Value, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Applied:
    """Number of nonzero elements along the given axes."""
    return sum_(x != 0, axis=axis, keepdim=keepdim)


@public(method=True)
def equal_all(x: Value, y: Value, name: str | None = None) -> Applied:
    """Whether two values have the same shape and equal elements."""
    if UNKNOWN in (*x.shape, *y.shape):
        raise ShapeError(
            f"equal_all: whether shapes {list(x.shape)} and {list(y.shape)} are the same is known only at run time; "
            "for values of one shape, opsmith.all(x == y) is the same"
        )
    return all_(x == y) if list(x.shape) == list(y.shape) else sum_(ones_like(x, "int64")) < 0
