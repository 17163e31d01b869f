"""Figures that describe many values: spread, how they vary together, and how many there are of a kind."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from app.errors import OperatorError, ShapeError
from app.ops.composed import composed
from app.ops.creation import ones_like
from app.ops.definition import operator
from app.ops.dtype import canonical
from app.ops.linear import matmul
from app.ops.logic import isclose, isnan, where
from app.ops.math import exp, sqrt, square
from app.ops.matrix import diagonal
from app.ops.reduction import all, infer_reduction, mean, reduced_in_onnx, spread, sum
from app.ops.rounding import clip
from app.ops.shaping import cast_like, reshape, squeeze, transpose, unsqueeze
from app.ops.solving import floats
from app.ops.spec import UNKNOWN, Spec, count, reduced_axes


def _number_of(x: Any, axis: Any) -> Any:
    """How many elements a reduction over axes takes together; a value where that is known only in a run."""
    number = count([x.shape[a] for a in reduced_axes(axis, len(x.shape))])
    return sum(ones_like(x), axis=axis, keepdim=True) if number == UNKNOWN else float(number)


@composed
def var(x: Any, axis: Any = None, unbiased: bool = True, keepdim: bool = False, name: Any = None) -> Any:
    """The mean of squared distances from the mean; unbiased, their sum is divided by one less than their number."""
    squares = square(x - mean(x, axis=axis, keepdim=True))
    if not unbiased:
        return mean(squares, axis=axis, keepdim=keepdim)
    number = _number_of(x, axis)
    left = number - 1.0 if hasattr(number, "dtype") else number - 1.0 or math.nan
    return sum(squares / left, axis=axis, keepdim=keepdim)


@composed
def std(x: Any, axis: Any = None, unbiased: bool = True, keepdim: bool = False, name: Any = None) -> Any:
    """The root of `var`."""
    return sqrt(var(x, axis, unbiased, keepdim))


@operator(infer_reduction, prepare=floats)
def logsumexp(x: Any, *, axis: Any = None, keepdim: bool = False) -> Any:
    """The logarithm of the sum of `exp(x)` over axes, which does not overflow."""
    axis = axis if x.ndim else None
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdim else np.squeeze(total, reduced_axes(axis, x.ndim))


@logsumexp.gradient
def _(x: Any, out: Any, dout: Any, axis: Any, keepdim: bool) -> Any:
    share = exp(x - spread(out, x, axis=axis, keepdim=keepdim))
    return share * spread(dout, x, axis=axis, keepdim=keepdim)


@logsumexp.in_onnx
def _(onnx: Any, x: Any, axis: Any, keepdim: bool) -> Any:
    return reduced_in_onnx(onnx, "ReduceLogSumExp", x, reduced_axes(axis, x.rank), keepdim)


# How variables vary together


@composed
def cov(
    x: Any, rowvar: bool = True, ddof: bool = True, fweights: Any = None, aweights: Any = None, name: Any = None
) -> Any:
    """How variables vary together: rows of a matrix, or without `rowvar` its columns, of which each has values."""
    rows = reshape(x, [1, -1]) if len(x.shape) < 2 else x if rowvar else transpose(x)
    weights = _product_of(fweights, aweights)
    if weights is None:
        number = _number_of(rows, 1)
        centred = rows - mean(rows, axis=1, keepdim=True)
        products = matmul(centred, centred, transpose_y=True)
        total = number - 1.0 if ddof else number
    else:
        weights = cast_like(weights, rows)
        number = sum(weights)
        centred = rows - sum(rows * weights, axis=1, keepdim=True) / number
        products = matmul(centred * weights, centred, transpose_y=True)
        lost = 1.0 if aweights is None else sum(weights * cast_like(aweights, rows)) / number
        total = number - lost if ddof else number
    return squeeze(products / total) if len(x.shape) < 2 else products / total


def _product_of(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return first * second


@composed
def corrcoef(x: Any, rowvar: bool = True, name: Any = None) -> Any:
    """How far variables vary together, from -1 to 1."""
    together = cov(x, rowvar)
    if not together.shape:
        return together / together
    alone = sqrt(diagonal(together))
    return clip(together / unsqueeze(alone, axis=1) / unsqueeze(alone, axis=0), min=-1.0, max=1.0)


# Sums and counts


@composed
def nansum(x: Any, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: Any = None) -> Any:
    """The sum of the elements that are numbers."""
    return sum(where(isnan(x), 0.0, x), axis, dtype, keepdim)


@composed
def nanmean(x: Any, axis: Any = None, keepdim: bool = False, name: Any = None) -> Any:
    """The mean of the elements that are numbers."""
    there = where(isnan(x), 0.0, ones_like(x))
    return nansum(x, axis, keepdim=keepdim) / sum(there, axis=axis, keepdim=keepdim)


@composed
def nan_to_num(
    x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, name: Any = None
) -> Any:
    """The value with other numbers in place of what is not a number, or infinite."""
    limits = np.finfo(canonical(x.dtype))
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    finite = where(x == math.inf, float(high), where(x == -math.inf, float(low), x))
    return where(isnan(x), nan, finite)


@operator(lambda x, *, bins=100, min=0.0, max=0.0: Spec((bins,), "int64"))
def histogram(x: Any, *, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Any:
    """How many values there are in each of so many parts of a range: at first, of the range of the values."""
    return np.histogram(x, bins, None if min == max else (min, max))[0].astype(np.int64)


@histogram.in_onnx
def _(onnx: Any, x: Any, bins: int, min: float, max: float) -> Any:
    if min == max:
        raise OperatorError("the range that it counts in must be told, by min and max")
    edges, values = np.linspace(min, max, bins + 1), onnx.Cast(onnx.Reshape(x, [-1, 1]), to="float64")
    above = onnx.GreaterOrEqual(values, edges[:-1])
    beyond = onnx.Or(onnx.Greater(values, edges[-1:]), onnx.GreaterOrEqual(values, np.append(edges[1:-1], np.inf)))
    return onnx.ReduceSum(onnx.Cast(onnx.And(above, onnx.Not(beyond)), to="int64"), [0], keepdims=0)


@composed
def count_nonzero(x: Any, axis: Any = None, keepdim: bool = False, name: Any = None) -> Any:
    """How many elements are not zero."""
    return sum(x != 0, axis=axis, keepdim=keepdim)


@operator(lambda x, *, minlength=0: Spec((UNKNOWN,), "int64"))
def counts_of_numbers(x: Any, *, minlength: int = 0) -> Any:
    """How often each whole number from 0 on is there."""
    return np.bincount(x, minlength=minlength)


@counts_of_numbers.in_onnx
def _(onnx: Any, x: Any, minlength: int) -> Any:
    return onnx.ReduceSum(onnx.Cast(_is_number(onnx, x, minlength), to="int64"), [0], keepdims=0)


def _is_number(onnx: Any, x: Any, minlength: int) -> Any:
    """For each element a row that says which whole number it is."""
    largest = onnx.ReduceMax(onnx.listed(onnx.Cast(x, to="int64"), [minlength - 1]), [0], keepdims=1)
    return onnx.Equal(onnx.Unsqueeze(onnx.Cast(x, to="int64"), [1]), onnx.counted(largest + 1))


@operator(lambda x, weights, *, minlength=0: Spec((UNKNOWN,), weights.dtype))
def weights_of_numbers(x: Any, weights: Any, *, minlength: int = 0) -> Any:
    """What each whole number from 0 on weighs, by the sum of the weights that stand where it does."""
    return np.bincount(x, weights, minlength).astype(weights.dtype)


@weights_of_numbers.in_onnx
def _(onnx: Any, x: Any, weights: Any, minlength: int) -> Any:
    shares = onnx.Where(_is_number(onnx, x, minlength), onnx.Unsqueeze(weights, [1]), np.zeros((), weights.dtype))
    return onnx.ReduceSum(shares, [0], keepdims=0)


@composed
def bincount(x: Any, weights: Any = None, minlength: int = 0, name: Any = None) -> Any:
    """How often each whole number from 0 on is there, or what it weighs."""
    return counts_of_numbers(x, minlength) if weights is None else weights_of_numbers(x, weights, minlength)


# Whether all is as expected


@composed
def allclose(
    x: Any, y: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, name: Any = None
) -> Any:
    """Whether all elements of two values differ by at most `atol` and `rtol` of the second together."""
    return all(isclose(x, y, float(rtol), float(atol), equal_nan))


@composed
def equal_all(x: Any, y: Any, name: Any = None) -> Any:
    """Whether two values have the same shape and the same elements."""
    if list(x.shape) == list(y.shape):
        return all(x == y)
    known = zip(x.shape, y.shape, strict=False)
    if len(x.shape) == len(y.shape) and builtins.all(a == b or UNKNOWN in (a, b) for a, b in known):
        raise ShapeError(
            f"equal_all: whether shapes {list(x.shape)} and {list(y.shape)} are the same is known only in a run; "
            "compare app.shape of both, or declare the sizes"
        )
    return sum(ones_like(x, "int64")) < 0


@composed
def is_empty(x: Any, name: Any = None) -> Any:
    """Whether there is no element."""
    return sum(ones_like(x, "int64")) == 0
