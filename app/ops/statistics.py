"""Variance, standard deviation, logsumexp, counts and comparisons of whole values."""

from __future__ import annotations

import math

import numpy as np

from app.errors import ShapeError
from app.ops.creation import ones_like
from app.ops.definition import operator
from app.ops.dtype import canonical
from app.ops.elementwise import floats
from app.ops.logic import isclose, isnan, where
from app.ops.math import exp, sqrt, square
from app.ops.public import public
from app.ops.reduction import all_, infer_reduction, mean, reduced_in_onnx, spread, sum_
from app.ops.spec import UNKNOWN, Axis, count, reduced_axes
from app.ops.values import Applied, Array, Gradients, OnnxNodes, OnnxResult, OnnxValue, Results, Value


def _number_of(x: Value, axis: Axis) -> Applied:
    """The number of elements that a reduction combines; a value if it is known only at run time."""
    number = count([x.shape[a] for a in reduced_axes(axis, len(x.shape))])
    return sum_(ones_like(x), axis=axis, keepdim=True) if number == UNKNOWN else float(number)


@public(method=True)
def var(x: Value, axis: Axis = None, unbiased: bool = True, keepdim: bool = False, name: str | None = None) -> Applied:
    """Variance along the given axes; with `unbiased`, divided by n - 1 instead of n."""
    squares = square(x - mean(x, axis=axis, keepdim=True))
    if not unbiased:
        return mean(squares, axis=axis, keepdim=keepdim)
    number = _number_of(x, axis)
    left = number - 1.0 if hasattr(number, "dtype") else number - 1.0 or math.nan
    return sum_(squares / left, axis=axis, keepdim=keepdim)


@public(method=True)
def std(x: Value, axis: Axis = None, unbiased: bool = True, keepdim: bool = False, name: str | None = None) -> Applied:
    """Standard deviation along the given axes; with `unbiased`, from the variance divided by n - 1."""
    return sqrt(var(x, axis, unbiased, keepdim))


@public(method=True)
@operator(infer_reduction, prepare=floats)
def logsumexp(x: Array, *, axis: Axis = None, keepdim: bool = False) -> Results:
    """log(sum(exp(x))) along the given axes, computed without overflow."""
    axis = axis if x.ndim else None
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdim else np.squeeze(total, reduced_axes(axis, x.ndim))


@logsumexp.gradient
def _(x: Value, out: Value, dout: Value, axis: Axis, keepdim: bool) -> Gradients:
    share = exp(x - spread(out, x, axis=axis, keepdim=keepdim))
    return share * spread(dout, x, axis=axis, keepdim=keepdim)


@logsumexp.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, axis: Axis, keepdim: bool) -> OnnxResult:
    return reduced_in_onnx(onnx, "ReduceLogSumExp", x, reduced_axes(axis, x.rank), keepdim)


# Sums and counts


@public(method=True, in_place=True)
def nan_to_num(
    x: Value, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, name: str | None = None
) -> Applied:
    """Replace NaN and infinities by numbers, elementwise; infinities by the largest finite numbers by default."""
    limits = np.finfo(canonical(x.dtype))
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    finite = where(x == math.inf, float(high), where(x == -math.inf, float(low), x))
    return where(isnan(x), nan, finite)


@public(method=True)
def count_nonzero(x: Value, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Applied:
    """Number of nonzero elements along the given axes."""
    return sum_(x != 0, axis=axis, keepdim=keepdim)


# Comparisons of whole values


@public(method=True)
def allclose(
    x: Value, y: Value, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, name: str | None = None
) -> Applied:
    """Whether all elements are close: abs(x - y) <= atol + rtol * abs(y)."""
    return all_(isclose(x, y, float(rtol), float(atol), equal_nan))


@public(method=True)
def equal_all(x: Value, y: Value, name: str | None = None) -> Applied:
    """Whether two values have the same shape and equal elements."""
    if list(x.shape) == list(y.shape):
        return all_(x == y)
    known = zip(x.shape, y.shape, strict=False)
    if len(x.shape) == len(y.shape) and all(a == b or UNKNOWN in (a, b) for a, b in known):
        raise ShapeError(
            f"equal_all: whether shapes {list(x.shape)} and {list(y.shape)} are the same is known only at run time; "
            "compare app.shape of both, or declare the sizes"
        )
    return sum_(ones_like(x, "int64")) < 0


@public(method=True)
def is_empty(x: Value, name: str | None = None) -> Applied:
    """Whether a value has no elements."""
    return sum_(ones_like(x, "int64")) == 0
