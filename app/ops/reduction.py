"""Reductions along axes, and their transpose `expand_reduced`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import OperatorError, ShapeError
from app.ops.creation import ones_like
from app.ops.definition import operator
from app.ops.dtype import FLOATS, INTEGERS
from app.ops.elementwise import floats
from app.ops.logic import isclose, isfinite, where
from app.ops.lowering import Reduction, Spread
from app.ops.math import abs_, exp, sqrt, square
from app.ops.public import public
from app.ops.shaping import cast
from app.ops.size import AnySize, Shape
from app.ops.spec import UNKNOWN, Axis, Spec, count, normal_axis, reduced_axes
from app.ops.values import Applied, Array, Attributes, Gradients, Number, OnnxRule, Results, Value

_total: Any = np.add.reduce
"""`np.sum` without its overhead, which is half of its time for small arrays."""


def _reduced_shape(shape: Shape, axis: Axis, keepdim: bool) -> Shape:
    axes = reduced_axes(axis, len(shape))
    if keepdim:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def infer_reduction(x: Spec, *, axis: Axis = None, keepdim: bool = False) -> Spec:
    """Shape inference of a reduction that keeps the element type."""
    return Spec(_reduced_shape(x.shape, axis, keepdim), x.dtype)


def _infer_sum(x: Spec, *, axis: Axis = None, dtype: str | None = None, keepdim: bool = False) -> Spec:
    natural = "int64" if x.dtype == "bool" or x.dtype in INTEGERS else x.dtype
    return Spec(_reduced_shape(x.shape, axis, keepdim), dtype or natural)


def _axes_of(attributes: Attributes, shapes: Sequence[Shape]) -> Sequence[int]:
    return reduced_axes(attributes["axis"], len(shapes[0]))


@public(method=True)
@operator(_infer_sum, lowering=Reduction(_axes_of, lambda dtype: 0))
def sum_(x: Array, *, axis: Axis = None, dtype: str | None = None, keepdim: bool = False) -> Results:
    """Sum along the given axes, or of all elements; integers and booleans are summed as int64."""
    natural = np.int64 if x.dtype.kind in "biu" else None
    return _total(x, axis, dtype or natural, keepdims=keepdim)


@sum_.gradient
def _(x_like: Value, dout: Value, axis: Axis, dtype: str | None, keepdim: bool) -> Gradients:
    gradient = expand_reduced(dout, x_like, axis=axis, keepdim=keepdim)
    return gradient if dtype is None else cast(gradient, dtype=x_like.dtype)


@sum_.in_onnx
def _(onnx: Any, x: Any, axis: Axis, dtype: str | None, keepdim: bool) -> Any:
    natural = x.dtype if x.floating else "int64"
    return reduced_in_onnx(onnx, "ReduceSum", onnx.Cast(x, to=dtype or natural), reduced_axes(axis, x.rank), keepdim)


def reduces(kind: str) -> OnnxRule:
    """The ONNX rule of a reduction without further attributes."""
    return lambda onnx, x, axis, keepdim: reduced_in_onnx(onnx, kind, x, reduced_axes(axis, x.rank), keepdim)


def reduced_in_onnx(onnx: Any, kind: str, x: Any, axes: Sequence[int], keepdim: bool) -> Any:
    """The reduction of a value along axes; the value itself if there are no axes."""
    return getattr(onnx, kind)(x, list(axes), keepdims=keepdim) if axes else x


@public(method=True)
@operator(
    infer_reduction,
    prepare=floats,
    lowering=Reduction(_axes_of, lambda dtype: 0, mean=True),
    onnx=reduces("ReduceMean"),
)
def mean(x: Array, *, axis: Axis = None, keepdim: bool = False) -> Results:
    """Mean along the given axes, or of all elements."""
    axis = axis if x.ndim else reduced_axes(axis, 0)
    if x.dtype.itemsize < 4 or not x.size:  # np.mean is accurate for half precision, but slow for small arrays
        return np.mean(x, axis=axis, keepdims=keepdim)
    total: Any = _total(x, axis, keepdims=keepdim)
    return total / x.dtype.type(x.size / total.size)


@mean.gradient
def _(x_like: Value, dout: Value, axis: Axis, keepdim: bool) -> Gradients:
    return expand_reduced(dout, x_like, axis=axis, keepdim=keepdim, share=True)


def _infer_spread(y: Spec, like: Spec, *, axis: Axis = None, keepdim: bool = False, share: bool = False) -> Spec:
    return Spec(like.shape, y.dtype)


@operator(_infer_spread, lowering=Spread(_axes_of, lambda attributes: attributes["share"]))
def expand_reduced(y: Array, like: Array, *, axis: Axis = None, keepdim: bool = False, share: bool = False) -> Results:
    """Broadcast the result of a reduction to the shape of its input; `share` divides by the number of elements."""
    if share:
        y = y / y.dtype.type((like.size or 1) / (y.size or 1))
    if y.size == 1:
        out = np.empty(like.shape, y.dtype)
        out[...] = y  # for small arrays ten times faster than np.broadcast_to
        return out
    axes = reduced_axes(axis, like.ndim)
    shape_with_ones = [1 if i in axes else size for i, size in enumerate(like.shape)]
    return np.broadcast_to(y.reshape(shape_with_ones), like.shape)


@expand_reduced.gradient_of("y")
def _(dout: Value, axis: Axis, keepdim: bool, share: bool) -> Gradients:
    reduce = mean if share else sum_
    return reduce(dout, axis=axis, keepdim=keepdim)


def _infer_extreme(x: Spec, *, axis: Axis = None, keepdim: bool = False) -> Spec:
    result = infer_reduction(x, axis=axis, keepdim=keepdim)
    if count(result.shape) != 0:
        check_not_empty(x.shape, reduced_axes(axis, len(x.shape)))
    return result


def check_not_empty(shape: Sequence[AnySize], axes: Sequence[int]) -> None:
    """Raise a ShapeError if one of the reduced axes is empty."""
    for axis in axes:
        if shape[axis] == 0:
            raise ShapeError(f"a value of shape {list(shape)} has no elements along axis {axis} to choose from")


@public("amax", method=True)
@operator(
    _infer_extreme,
    lowering=Reduction(_axes_of, lambda dtype: _limits(dtype)[0], lambda x, y: np.maximum(x, y)),
    onnx=reduces("ReduceMax"),
)
def max_(x: Array, *, axis: Axis = None, keepdim: bool = False) -> Results:
    """Maximum along the given axes, or of all elements; ties share the gradient."""
    return np.max(x, axis=axis, keepdims=keepdim)


@public("amin", method=True)
@operator(
    _infer_extreme,
    lowering=Reduction(_axes_of, lambda dtype: _limits(dtype)[1], lambda x, y: np.minimum(x, y)),
    onnx=reduces("ReduceMin"),
)
def min_(x: Array, *, axis: Axis = None, keepdim: bool = False) -> Results:
    """Minimum along the given axes, or of all elements; ties share the gradient."""
    return np.min(x, axis=axis, keepdims=keepdim)


@max_.gradient
@min_.gradient
def _(x: Value, out: Value, dout: Value, axis: Axis, keepdim: bool) -> Gradients:
    chosen = x == expand_reduced(out, x, axis=axis, keepdim=keepdim)
    share = dout / sum_(cast(chosen, dtype=x.dtype), axis=axis, keepdim=keepdim)
    return where(chosen, expand_reduced(share, x, axis=axis, keepdim=keepdim), 0.0)


def _infer_prod(x: Spec, *, axis: Axis = None, keepdim: bool = False, dtype: str | None = None) -> Spec:
    return Spec(_reduced_shape(x.shape, axis, keepdim), dtype or x.dtype)


@public(method=True)
@operator(_infer_prod)
def prod(x: Array, *, axis: Axis = None, keepdim: bool = False, dtype: str | None = None) -> Results:
    """Product along the given axes, or of all elements."""
    return np.prod(x, axis=axis, keepdims=keepdim, dtype=dtype or x.dtype)


@prod.gradient
def _(x: Value, dout: Value, axis: Axis, keepdim: bool, dtype: str | None) -> Gradients:
    dout = dout if dtype is None else cast(dout, dtype=x.dtype)
    # the product of the other elements: out / x, except where x is zero
    zero = x == 0
    filled = where(zero, 1.0, x)
    zeros = expand_reduced(sum_(zero, axis=axis, keepdim=keepdim), x, axis=axis, keepdim=keepdim)
    product = expand_reduced(prod(filled, axis=axis, keepdim=keepdim), x, axis=axis, keepdim=keepdim)
    quotient, rest = product / filled, zeros - cast(zero, dtype="int64")
    # beside one other zero it is zero, but written as a multiple of that zero for its own derivative
    nothing = where(zero, x, 0.0)
    other = expand_reduced(sum_(nothing, axis=axis, keepdim=keepdim), x, axis=axis, keepdim=keepdim) - nothing
    multiple = where(rest == 1, other * where(isfinite(quotient), quotient, 0.0), 0.0)
    return expand_reduced(dout, x, axis=axis, keepdim=keepdim) * where(rest == 0, quotient, multiple)


@prod.in_onnx
def _(onnx: Any, x: Any, axis: Axis, keepdim: bool, dtype: str | None) -> Any:
    kind = onnx.Cast(x, to=dtype or x.dtype)
    return reduced_in_onnx(onnx, "ReduceProd", kind, reduced_axes(axis, x.rank), keepdim)


def _infer_boolean(x: Spec, *, axis: Axis = None, keepdim: bool = False) -> Spec:
    return Spec(_reduced_shape(x.shape, axis, keepdim), "bool")


@public(method=True)
@operator(
    _infer_boolean,
    onnx=lambda onnx, x, axis, keepdim: onnx.Equal(_count_true(onnx, onnx.Not(x), axis, keepdim, x.rank), 0),
)
def all_(x: Array, *, axis: Axis = None, keepdim: bool = False) -> Results:
    """Whether all elements along the given axes are true."""
    return np.all(x, axis=axis, keepdims=keepdim)


def _count_true(onnx: Any, x: Any, axis: Axis, keepdim: bool, rank: int) -> Any:
    number = onnx.Cast(onnx.Cast(x, to="bool"), to="int32")
    return reduced_in_onnx(onnx, "ReduceSum", number, reduced_axes(axis, rank), keepdim)


@public(method=True)
@operator(
    _infer_boolean, onnx=lambda onnx, x, axis, keepdim: onnx.Greater(_count_true(onnx, x, axis, keepdim, x.rank), 0)
)
def any_(x: Array, *, axis: Axis = None, keepdim: bool = False) -> Results:
    """Whether any element along the given axes is true."""
    return np.any(x, axis=axis, keepdims=keepdim)


def _limits(dtype: str) -> tuple[Number, Number]:
    """The smallest and the largest value of a type."""
    if dtype in FLOATS:
        return float("-inf"), float("inf")
    if dtype == "bool":
        return False, True
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _infer_index(x: Spec, *, axis: int | None = None, keepdim: bool = False, dtype: str = "int64") -> Spec:
    check_not_empty(x.shape, reduced_axes(axis, len(x.shape)))
    return Spec(_reduced_shape(x.shape, axis, keepdim), dtype)


def _index(kind: str) -> OnnxRule:
    """The ONNX rule of `argmax` or `argmin`."""

    def rule(onnx: Any, x: Any, axis: int | None, keepdim: bool, dtype: str) -> Any:
        if axis is not None and x.rank:
            return onnx.Cast(getattr(onnx, kind)(x, axis=normal_axis(axis, x.rank), keepdims=keepdim), to=dtype)
        place = getattr(onnx, kind)(onnx.Reshape(x, [-1]), axis=0, keepdims=0)
        return onnx.Cast(onnx.Reshape(place, [1] * x.rank if keepdim else []), to=dtype)

    return rule


@public(method=True)
@operator(_infer_index, onnx=_index("ArgMax"))
def argmax(x: Array, *, axis: int | None = None, keepdim: bool = False, dtype: str = "int64") -> Results:
    """Index of the maximum along an axis, or in the flattened value; the first one if there are several."""
    return np.argmax(x, axis=axis, keepdims=keepdim).astype(dtype, copy=False)


@public(method=True)
@operator(_infer_index, onnx=_index("ArgMin"))
def argmin(x: Array, *, axis: int | None = None, keepdim: bool = False, dtype: str = "int64") -> Results:
    """Index of the minimum along an axis, or in the flattened value; the first one if there are several."""
    return np.argmin(x, axis=axis, keepdims=keepdim).astype(dtype, copy=False)


# Functions composed of reductions, and logsumexp


def _number_of(x: Value, axis: Axis) -> Applied:
    """The number of elements that a reduction combines; a value if it is known only at run time."""
    number = count([x.shape[a] for a in reduced_axes(axis, len(x.shape))])
    return sum_(ones_like(x), axis=axis, keepdim=True) if number == UNKNOWN else float(number)


@public(method=True)
def var(x: Value, axis: Axis = None, unbiased: bool = True, keepdim: bool = False) -> Applied:
    """Variance along the given axes; with `unbiased`, divided by n - 1 instead of n."""
    axis = None if isinstance(axis, (list, tuple)) and not axis else axis
    squares = square(x - mean(x, axis=axis, keepdim=True))
    number = _number_of(x, axis)
    if not unbiased or (isinstance(number, float) and number == 0):
        return mean(squares, axis=axis, keepdim=keepdim)
    left = number - 1.0 if hasattr(number, "dtype") else number - 1.0 or math.nan
    return sum_(squares / left, axis=axis, keepdim=keepdim)


@public(method=True)
def std(x: Value, axis: Axis = None, unbiased: bool = True, keepdim: bool = False) -> Applied:
    """Standard deviation along the given axes; with `unbiased`, from the variance divided by n - 1.

    The gradient is zero where all values are equal.
    """
    variance = var(x, axis, unbiased, keepdim)
    return where(variance > 0, sqrt(where(variance > 0, variance, 1.0)), variance * 0.0)


@public(method=True)
def norm(x: Value, p: float | str | None = None, axis: Axis = None, keepdim: bool = False) -> Applied:
    """Norm along the given axes, or of the flattened value: the 2-norm, or that of p = 1 or infinity.

    Along two axes it is the Frobenius norm of matrices. The gradient is zero where the 2-norm is.
    """
    if p not in (None, "fro", 1, 2, math.inf):
        raise OperatorError(
            f"norm: p is 1, 2, math.inf or 'fro', not {p!r}; write opsmith.sum(opsmith.abs(x) ** p) ** (1 / p)"
        )
    if isinstance(axis, (tuple, list)) and len(axis) == 2 and p not in (None, "fro"):
        raise OperatorError(
            f"norm: of matrices, along two axes, p is 'fro', not {p!r}; np.linalg.norm(x.numpy(), {p!r}) computes it"
        )
    (x,) = floats([x])
    if p == 1:
        return sum_(abs_(x), axis=axis, keepdim=keepdim)
    if p == math.inf:
        return max_(abs_(x), axis=axis, keepdim=keepdim)
    wide = cast(x, dtype="float32") if x.dtype == "float16" else x  # the squares would overflow
    total = sum_(square(wide), axis=axis, keepdim=keepdim)
    root = where(total > 0, sqrt(where(total > 0, total, 1.0)), total)
    return cast(root, dtype="float16") if wide is not x else root


@public(method=True)
@operator(infer_reduction, prepare=floats)
def logsumexp(x: Array, *, axis: Axis = None, keepdim: bool = False) -> Results:
    """log(sum(exp(x))) along the given axes, computed without overflow."""
    axis = axis if x.ndim else reduced_axes(axis, 0)
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdim else np.squeeze(total, reduced_axes(axis, x.ndim))


@logsumexp.in_onnx
def _(onnx: Any, x: Any, axis: Axis, keepdim: bool) -> Any:
    # not by ReduceLogSumExp, of which ONNX Runtime is wrong about values that begin with -inf
    axes = reduced_axes(axis, x.rank)
    top = reduced_in_onnx(onnx, "ReduceMax", x, axes, True)
    top = onnx.Where(onnx.IsInf(top), 0, top)
    total = onnx.Log(reduced_in_onnx(onnx, "ReduceSum", onnx.Exp(x - top), axes, True)) + top
    return total if keepdim or not axes else onnx.Squeeze(total, list(axes))


@logsumexp.gradient
def _(x: Value, out: Value, dout: Value, axis: Axis, keepdim: bool) -> Gradients:
    share = exp(x - expand_reduced(out, x, axis=axis, keepdim=keepdim))
    return share * expand_reduced(dout, x, axis=axis, keepdim=keepdim)


@public(method=True)
def allclose(x: Value, y: Value, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Applied:
    """Whether all elements are close: abs(x - y) <= atol + rtol * abs(y)."""
    return all_(isclose(x, y, float(rtol), float(atol), equal_nan))
