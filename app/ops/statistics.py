"""Figures that describe many values: spread, size, middle, and how many there are of a kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from app.errors import OperatorError
from app.ops.composed import composed
from app.ops.creation import ones_like
from app.ops.definition import operator
from app.ops.dtype import canonical
from app.ops.elementwise import to_common_type
from app.ops.logic import isclose, isnan, where
from app.ops.math import abs, exp, sqrt, square
from app.ops.reduction import all, infer_reduction, mean, spread, sum
from app.ops.rounding import sign
from app.ops.shaping import cast_like, flatten, reshape
from app.ops.sorting import kthvalue, sort
from app.ops.spec import UNKNOWN, Spec, count, normal_axis, reduced_axes


def _floating(values: list[Any]) -> list[Any]:
    return to_common_type(values, floating=True)


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


@operator(infer_reduction, prepare=_floating)
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


# Size


def _infer_norm(x: Spec, *, p: float = 2.0, axis: Any = None, keepdim: bool = False) -> Spec:
    return infer_reduction(x, axis=axis, keepdim=keepdim)


@operator(_infer_norm, prepare=_floating)
def p_norm(x: Any, *, p: float = 2.0, axis: Any = None, keepdim: bool = False) -> Any:
    """The p-th root of the sum of p-th powers of sizes over axes; with infinity, the largest size."""
    axis = axis if x.ndim else None
    sizes = np.abs(x)
    if math.isinf(p):
        return (np.max if p > 0 else np.min)(sizes, axis=axis, keepdims=keepdim)
    if p == 0:
        return np.sum(sizes != 0, axis=axis, keepdims=keepdim, dtype=x.dtype)
    return np.sum(sizes**p, axis=axis, keepdims=keepdim, dtype=x.dtype) ** x.dtype.type(1.0 / p)


@p_norm.gradient
def _(x: Any, out: Any, dout: Any, p: float, axis: Any, keepdim: bool) -> Any:
    whole = spread(out, x, axis=axis, keepdim=keepdim)
    arriving = spread(dout, x, axis=axis, keepdim=keepdim)
    if p == 0:
        return arriving * 0.0
    if math.isinf(p):
        chosen = cast_like(abs(x) == whole, x)
        return arriving * sign(x) * chosen / spread(sum(chosen, axis, None, keepdim), x, axis=axis, keepdim=keepdim)
    if p == 1:
        return arriving * sign(x)
    safe = where(whole == 0, 1.0, whole)  # at zero the gradient is zero
    if p == 2:
        return where(whole == 0, 0.0, arriving * x / safe)
    ratio = where(x == 0, 1.0, abs(x)) / safe
    return where(x == 0, 0.0, arriving * sign(x) * ratio ** (p - 1.0))


@composed
def norm(x: Any, p: Any = None, axis: Any = None, keepdim: bool = False, name: Any = None) -> Any:
    """The size of a vector, or of all elements taken as one: the root of the sum of squares, unless `p` says other."""
    if isinstance(p, str) and p != "fro":
        raise OperatorError(f"norm: p is a number or 'fro', not {p!r}")
    return p_norm(x, 2.0 if p is None or p == "fro" else float(p), axis, keepdim)


@composed
def dist(x: Any, y: Any, p: float = 2.0, name: Any = None) -> Any:
    """The size of a difference."""
    return norm(x - y, p)


# The middle, and counts


@composed
def median(x: Any, axis: int | None = None, keepdim: bool = False, mode: str = "avg", name: Any = None) -> Any:
    """The value in the middle, or the mean of the two that are; with mode 'min', the lower one and its place."""
    if mode not in ("avg", "min"):
        raise OperatorError(f"median: mode is 'avg' or 'min', not {mode!r}")
    along = 0 if axis is None else axis
    line = flatten(x) if axis is None else x
    size = line.shape[normal_axis(along, len(line.shape))]
    if size == UNKNOWN:
        raise OperatorError("median needs a size that is known along its axis")
    low = (size - 1) // 2
    found: tuple[Any, ...]
    if mode == "min":
        found = kthvalue(line, low + 1, along, True)
    else:
        parts: list[Any] = [slice(None)] * len(line.shape)
        parts[along] = slice(low, size // 2 + 1)
        found = (mean(sort(line, along)[tuple(parts)], axis=along, keepdim=True),)
    kept = [1] * len(x.shape) if axis is None else None
    results = tuple(_without(part, along, keepdim, kept) for part in found)
    return results if mode == "min" and axis is not None else results[0]


def _without(x: Any, axis: int, keepdim: bool, kept: list[int] | None) -> Any:
    if keepdim:
        return x if kept is None else reshape(x, kept)
    return x.squeeze(axis)


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


@composed
def count_nonzero(x: Any, axis: Any = None, keepdim: bool = False, name: Any = None) -> Any:
    """How many elements are not zero."""
    return sum(x != 0, axis=axis, keepdim=keepdim)


@operator(lambda x, *, minlength=0: Spec((UNKNOWN,), "int64"))
def counts_of_numbers(x: Any, *, minlength: int = 0) -> Any:
    """How often each whole number from 0 on is there."""
    return np.bincount(x, minlength=minlength)


@operator(lambda x, weights, *, minlength=0: Spec((UNKNOWN,), weights.dtype))
def weights_of_numbers(x: Any, weights: Any, *, minlength: int = 0) -> Any:
    """What each whole number from 0 on weighs, by the sum of the weights that stand where it does."""
    return np.bincount(x, weights, minlength).astype(weights.dtype)


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
    return all(x == y) if list(x.shape) == list(y.shape) else sum(ones_like(x, "int64")) < 0


@composed
def is_empty(x: Any, name: Any = None) -> Any:
    """Whether there is no element."""
    return sum(ones_like(x, "int64")) == 0
