"""Reductions: sums, means and extremes over axes, and their counterparts that spread a value out again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.errors import ShapeError
from app.ops.definition import operator
from app.ops.dtype import FLOATS, INTEGERS
from app.ops.elementwise import to_common_type
from app.ops.form import Elementwise, Reduction, Spread, ToShape
from app.ops.logic import where
from app.ops.shaping import cast_like
from app.ops.spec import UNKNOWN, Spec, broadcast, normal_axis, reduced_axes


def _reduced_shape(shape: tuple[int, ...], axis: Any, keepdim: bool) -> tuple[int, ...]:
    axes = reduced_axes(axis, len(shape))
    if keepdim:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def _infer_reduction(x: Spec, *, axis: Any = None, keepdim: bool = False) -> Spec:
    return Spec(_reduced_shape(x.shape, axis, keepdim), x.dtype)


def _infer_sum(x: Spec, *, axis: Any = None, keepdim: bool = False) -> Spec:
    dtype = "int64" if x.dtype == "bool" or x.dtype in INTEGERS else x.dtype
    return Spec(_reduced_shape(x.shape, axis, keepdim), dtype)


def _axes_of(attributes: Mapping[str, Any], rank: int) -> Sequence[int]:
    return reduced_axes(attributes["axis"], rank)


def _add(x: Any, y: Any) -> Any:
    return x + y


@operator(_infer_sum, form=Reduction(_axes_of, lambda dtype: 0, _add))
def sum(x: Any, *, axis: Any = None, keepdim: bool = False) -> Any:
    """The sum over axes; whole numbers and truth values add up as int64."""
    wide = np.int64 if x.dtype.kind in "biu" else None
    return np.sum(x, axis=axis, keepdims=keepdim, dtype=wide)


@sum.gradient
def _(x: Any, dout: Any, axis: Any, keepdim: bool) -> Any:
    return spread(dout, x, axis=axis, keepdim=keepdim)


@operator(
    _infer_reduction,
    prepare=lambda values: to_common_type(values, floating=True),
    form=Reduction(_axes_of, lambda dtype: 0, _add, mean=True),
)
def mean(x: Any, *, axis: Any = None, keepdim: bool = False) -> Any:
    """The mean over axes."""
    return np.mean(x, axis=axis if x.ndim else None, keepdims=keepdim)


@mean.gradient
def _(x: Any, dout: Any, axis: Any, keepdim: bool) -> Any:
    return spread(dout, x, axis=axis, keepdim=keepdim, share=True)


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


@operator(_infer_reduction, form=Reduction(_axes_of, lambda dtype: _limits(dtype)[0], lambda x, y: np.maximum(x, y)))
def max(x: Any, *, axis: Any = None, keepdim: bool = False) -> Any:
    """The largest element over axes; equal ones share the gradient."""
    return np.max(x, axis=axis, keepdims=keepdim)


@operator(_infer_reduction, form=Reduction(_axes_of, lambda dtype: _limits(dtype)[1], lambda x, y: np.minimum(x, y)))
def min(x: Any, *, axis: Any = None, keepdim: bool = False) -> Any:
    """The smallest element over axes; equal ones share the gradient."""
    return np.min(x, axis=axis, keepdims=keepdim)


@max.gradient
@min.gradient
def _(x: Any, out: Any, dout: Any, axis: Any, keepdim: bool) -> Any:
    chosen = x == spread(out, x, axis=axis, keepdim=keepdim)
    share = dout / sum(cast_like(chosen, x), axis=axis, keepdim=keepdim)
    return where(chosen, spread(share, x, axis=axis, keepdim=keepdim), 0.0)


@operator(_infer_reduction)
def prod(x: Any, *, axis: Any = None, keepdim: bool = False) -> Any:
    """The product over axes."""
    return np.prod(x, axis=axis, keepdims=keepdim, dtype=x.dtype)


@prod.gradient
def _(x: Any, dout: Any, axis: Any, keepdim: bool) -> Any:
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


def _infer_position(x: Spec, *, axis: int | None = None, keepdim: bool = False) -> Spec:
    return Spec(_reduced_shape(x.shape, axis, keepdim), "int64")


@operator(_infer_position)
def argmax(x: Any, *, axis: int | None = None, keepdim: bool = False) -> Any:
    """The position of the largest element, the first of several."""
    return np.argmax(x, axis=axis, keepdims=keepdim)


@operator(_infer_position)
def argmin(x: Any, *, axis: int | None = None, keepdim: bool = False) -> Any:
    """The position of the smallest element, the first of several."""
    return np.argmin(x, axis=axis, keepdims=keepdim)


def _infer_cumsum(x: Spec, *, axis: int = -1, reverse: bool = False) -> Spec:
    normal_axis(axis, len(x.shape))
    return x


@operator(_infer_cumsum)
def cumsum(x: Any, *, axis: int = -1, reverse: bool = False) -> Any:
    """Running sums along an axis, from its end where `reverse` says so."""
    if not x.ndim:
        return np.copy(x)
    if reverse:
        return np.flip(np.cumsum(np.flip(x, axis), axis, x.dtype), axis)
    return np.cumsum(x, axis, x.dtype)


@cumsum.gradient
def _(dout: Any, axis: int, reverse: bool) -> Any:
    return cumsum(dout, axis=axis, reverse=not reverse)


# Broadcasting undone and done


def _infer_sum_to(x: Spec, *, shape: tuple[int, ...]) -> Spec:
    broadcast(x.shape, shape)
    return Spec(shape, x.dtype)


def _sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    if x.shape == shape:
        return x
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(extra + i for i, size in enumerate(shape) if size == 1)
    return np.sum(x, axis=axes, dtype=x.dtype).reshape(shape)


def _axes_to(attributes: Mapping[str, Any], rank: int) -> Sequence[int]:
    """The axes that summing to a shape removes or makes 1."""
    shape = attributes["shape"]
    extra = rank - len(shape)
    return (*range(extra), *(extra + i for i, size in enumerate(shape) if size == 1))


@operator(_infer_sum_to, form=Reduction(_axes_to, lambda dtype: 0, _add))
def sum_to(x: Any, *, shape: tuple[int, ...]) -> Any:
    """The sum over the axes along which `shape` would be broadcast."""
    return _sum_to(x, shape)


@sum_to.gradient
def _(x: Any, dout: Any) -> Any:
    return expand_as(dout, x)


@operator(lambda x, like: Spec(like.shape, x.dtype), form=ToShape(sum_to))
def sum_like(x: Any, like: Any) -> Any:
    """The sum over the axes along which `like` would be broadcast, its shape being known only when it runs."""
    return _sum_to(x, like.shape)


@sum_like.gradient_of("x")
def _(x: Any, dout: Any) -> Any:
    return expand_as(dout, x)


def _same(x: Any) -> Any:
    return x


def _infer_expand(x: Spec, *, shape: tuple[int, ...]) -> Spec:
    sizes = _expanded(x.shape, shape)
    kept = zip(reversed(x.shape), reversed(sizes), strict=False)
    if {old for old, new in kept if old != new} - {1, UNKNOWN}:
        raise ShapeError(f"a value of shape {list(x.shape)} cannot be expanded to {list(shape)}")
    return Spec(sizes, x.dtype)


def _expanded(sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with the sizes that -1 keeps."""
    extra = len(shape) - len(sizes)
    if extra < 0:
        raise ShapeError(f"shape {list(shape)} has fewer axes than the value")
    if -1 in shape[:extra]:
        raise ShapeError(f"shape {list(shape)} keeps an axis (-1) that the value does not have")
    return tuple(sizes[i - extra] if size == -1 else size for i, size in enumerate(shape))


@operator(_infer_expand, form=Elementwise(_same, settings=False))
def expand(x: Any, *, shape: tuple[int, ...]) -> Any:
    """The value repeated along axes of size 1, and new ones in front; -1 keeps an axis as it is."""
    return np.broadcast_to(x, _expanded(x.shape, shape))


@expand.gradient
def _(x: Any, dout: Any) -> Any:
    return sum_like(dout, x)


@operator(lambda x, like: Spec(like.shape, x.dtype), form=Elementwise(_same, takes=(0,), settings=False))
def expand_as(x: Any, like: Any) -> Any:
    """The value repeated to the shape of another."""
    return np.broadcast_to(x, like.shape)


@expand_as.gradient_of("x")
def _(x: Any, dout: Any) -> Any:
    return sum_like(dout, x)
