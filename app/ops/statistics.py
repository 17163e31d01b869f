"""Variance, standard deviation, logsumexp and `allclose`."""

from __future__ import annotations

import math

import numpy as np

from app.ops.creation import ones_like
from app.ops.definition import operator
from app.ops.elementwise import floats
from app.ops.logic import isclose
from app.ops.math import exp, sqrt, square
from app.ops.public import public
from app.ops.reduction import all_, infer_reduction, mean, reduces, spread, sum_
from app.ops.spec import UNKNOWN, Axis, count, reduced_axes
from app.ops.values import Applied, Array, Gradients, Results, Value


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
@operator(infer_reduction, prepare=floats, onnx=reduces("ReduceLogSumExp"))
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


@public(method=True)
def allclose(
    x: Value, y: Value, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, name: str | None = None
) -> Applied:
    """Whether all elements are close: abs(x - y) <= atol + rtol * abs(y)."""
    return all_(isclose(x, y, float(rtol), float(atol), equal_nan))
