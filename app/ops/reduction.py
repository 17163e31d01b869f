"""Reductions: sums, means and extremes over axes, and the counterpart that spreads a value out again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.ops.composed import also_named
from app.ops.definition import operator
from app.ops.dtype import FLOATS, INTEGERS
from app.ops.elementwise import to_common_type
from app.ops.form import Reduction, Spread
from app.ops.logic import where
from app.ops.shaping import cast_like
from app.ops.spec import Spec, reduced_axes


def _reduced_shape(shape: tuple[int, ...], axis: Any, keepdim: bool) -> tuple[int, ...]:
    axes = reduced_axes(axis, len(shape))
    if keepdim:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def infer_reduction(x: Spec, *, axis: Any = None, keepdim: bool = False) -> Spec:
    """The shape that is left, and the same element type."""
    return Spec(_reduced_shape(x.shape, axis, keepdim), x.dtype)


def _infer_sum(x: Spec, *, axis: Any = None, dtype: str | None = None, keepdim: bool = False) -> Spec:
    natural = "int64" if x.dtype == "bool" or x.dtype in INTEGERS else x.dtype
    return Spec(_reduced_shape(x.shape, axis, keepdim), dtype or natural)


def _axes_of(attributes: Mapping[str, Any], rank: int) -> Sequence[int]:
    return reduced_axes(attributes["axis"], rank)


def _add(x: Any, y: Any) -> Any:
    return x + y


@operator(_infer_sum, form=Reduction(_axes_of, lambda dtype: 0, _add))
def sum(x: Any, *, axis: Any = None, dtype: str | None = None, keepdim: bool = False) -> Any:
    """The sum over axes; whole numbers and truth values add up as int64."""
    natural = np.int64 if x.dtype.kind in "biu" else None
    return np.sum(x, axis=axis, keepdims=keepdim, dtype=dtype or natural)


@sum.gradient
def _(x_like: Any, dout: Any, axis: Any, dtype: str | None, keepdim: bool) -> Any:
    gradient = spread(dout, x_like, axis=axis, keepdim=keepdim)
    return gradient if dtype is None else cast_like(gradient, x_like)


@operator(
    infer_reduction,
    prepare=lambda values: to_common_type(values, floating=True),
    form=Reduction(_axes_of, lambda dtype: 0, _add, mean=True),
)
def mean(x: Any, *, axis: Any = None, keepdim: bool = False) -> Any:
    """The mean over axes."""
    axis = axis if x.ndim else None
    if x.dtype.itemsize < 4 or not x.size:  # NumPy's mean is exact for half precision, and slow for small arrays
        return np.mean(x, axis=axis, keepdims=keepdim)
    total: Any = np.sum(x, axis=axis, keepdims=keepdim)
    return total / x.dtype.type(x.size / total.size)


@mean.gradient
def _(x_like: Any, dout: Any, axis: Any, keepdim: bool) -> Any:
    return spread(dout, x_like, axis=axis, keepdim=keepdim, share=True)


def _infer_spread(y: Spec, like: Spec, *, axis: Any = None, keepdim: bool = False, share: bool = False) -> Spec:
    return Spec(like.shape, y.dtype)


@operator(_infer_spread, form=Spread(_axes_of, lambda attributes: attributes["share"]))
def spread(y: Any, like: Any, *, axis: Any = None, keepdim: bool = False, share: bool = False) -> Any:
    """What a reduction gave, for each element that went into it; with `share`, divided by their number."""
    kept = tuple(1 if i in reduced_axes(axis, like.ndim) else size for i, size in enumerate(like.shape))
    y = np.reshape(y, kept)
    if share:
        y = y / y.dtype.type((like.size or 1) / (y.size or 1))
    return np.broadcast_to(y, like.shape)


@spread.gradient_of("y")
def _(dout: Any, axis: Any, keepdim: bool, share: bool) -> Any:
    reduce = mean if share else sum
    return reduce(dout, axis=axis, keepdim=keepdim)


@operator(infer_reduction, form=Reduction(_axes_of, lambda dtype: _limits(dtype)[0], lambda x, y: np.maximum(x, y)))
def max(x: Any, *, axis: Any = None, keepdim: bool = False) -> Any:
    """The largest element over axes; equal ones share the gradient."""
    return np.max(x, axis=axis, keepdims=keepdim)


@operator(infer_reduction, form=Reduction(_axes_of, lambda dtype: _limits(dtype)[1], lambda x, y: np.minimum(x, y)))
def min(x: Any, *, axis: Any = None, keepdim: bool = False) -> Any:
    """The smallest element over axes; equal ones share the gradient."""
    return np.min(x, axis=axis, keepdims=keepdim)


@max.gradient
@min.gradient
def _(x: Any, out: Any, dout: Any, axis: Any, keepdim: bool) -> Any:
    chosen = x == spread(out, x, axis=axis, keepdim=keepdim)
    share = dout / sum(cast_like(chosen, x), axis=axis, keepdim=keepdim)
    return where(chosen, spread(share, x, axis=axis, keepdim=keepdim), 0.0)


def _infer_prod(x: Spec, *, axis: Any = None, keepdim: bool = False, dtype: str | None = None) -> Spec:
    return Spec(_reduced_shape(x.shape, axis, keepdim), dtype or x.dtype)


@operator(_infer_prod)
def prod(x: Any, *, axis: Any = None, keepdim: bool = False, dtype: str | None = None) -> Any:
    """The product over axes."""
    return np.prod(x, axis=axis, keepdims=keepdim, dtype=dtype or x.dtype)


@prod.gradient
def _(x: Any, dout: Any, axis: Any, keepdim: bool, dtype: str | None) -> Any:
    dout = dout if dtype is None else cast_like(dout, x)
    # the product of the other elements: out / x, but for elements that are zero
    zero = x == 0
    filled = where(zero, 1.0, x)
    zeros = spread(sum(zero, axis=axis, keepdim=keepdim), x, axis=axis, keepdim=keepdim)
    product = spread(prod(filled, axis=axis, keepdim=keepdim), x, axis=axis, keepdim=keepdim)
    return spread(dout, x, axis=axis, keepdim=keepdim) * where(zeros == zero, product / filled, 0.0)


def _infer_truth(x: Spec, *, axis: Any = None, keepdim: bool = False) -> Spec:
    return Spec(_reduced_shape(x.shape, axis, keepdim), "bool")


@operator(_infer_truth)
def all(x: Any, *, axis: Any = None, keepdim: bool = False) -> Any:
    """Whether every element is true."""
    return np.all(x, axis=axis, keepdims=keepdim)


@operator(_infer_truth)
def any(x: Any, *, axis: Any = None, keepdim: bool = False) -> Any:
    """Whether some element is true."""
    return np.any(x, axis=axis, keepdims=keepdim)


def _limits(dtype: str) -> tuple[Any, Any]:
    """The smallest and the largest number of a type."""
    if dtype in FLOATS:
        return float("-inf"), float("inf")
    if dtype == "bool":
        return False, True
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _infer_position(x: Spec, *, axis: int | None = None, keepdim: bool = False, dtype: str = "int64") -> Spec:
    return Spec(_reduced_shape(x.shape, axis, keepdim), dtype)


@operator(_infer_position)
def argmax(x: Any, *, axis: int | None = None, keepdim: bool = False, dtype: str = "int64") -> Any:
    """The position of the largest element, the first of several."""
    return np.argmax(x, axis=axis, keepdims=keepdim).astype(dtype, copy=False)


@operator(_infer_position)
def argmin(x: Any, *, axis: int | None = None, keepdim: bool = False, dtype: str = "int64") -> Any:
    """The position of the smallest element, the first of several."""
    return np.argmin(x, axis=axis, keepdims=keepdim).astype(dtype, copy=False)


also_named(max, "amax")
also_named(min, "amin")
