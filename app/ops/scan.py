"""Cumulative sums and products along an axis, and differences."""

from __future__ import annotations

import numpy as np

from app.ops.definition import operator
from app.ops.dtype import INTEGERS, DTypeLike
from app.ops.joining import concat
from app.ops.logic import logical_and, where
from app.ops.public import public
from app.ops.shaping import cast_like, reshape_like
from app.ops.spec import Spec, count, normal_axis
from app.ops.values import Applied, Array, Gradients, OnnxNodes, OnnxResult, OnnxValue, Results, Value


def _infer_cumsum(x: Spec, *, axis: int | None = None, dtype: str | None = None, reverse: bool = False) -> Spec:
    if axis is None:
        return Spec((count(x.shape),), dtype or _wide(x.dtype))
    normal_axis(axis, len(x.shape))
    return Spec(x.shape, dtype or _wide(x.dtype))


def _wide(dtype: str) -> str:
    return "int64" if dtype == "bool" or dtype in INTEGERS else dtype


@public(method=True, in_place=True)
@operator(_infer_cumsum)
def cumsum(x: Array, *, axis: int | None = None, dtype: str | None = None, reverse: bool = False) -> Results:
    """Cumulative sum along an axis, or of the flattened value; with `reverse`, from the end."""
    wide = np.dtype(dtype or _wide(x.dtype.name))
    if axis is None:
        x, axis = np.ravel(x), 0
    if not x.ndim:
        return x.astype(wide)
    if reverse:
        return np.flip(np.cumsum(np.flip(x, axis), axis, wide), axis)
    return np.cumsum(x, axis, wide)


@cumsum.gradient
def _(x_like: Value, dout: Value, axis: int | None, reverse: bool) -> Gradients:
    gradient = cumsum(dout, axis=0 if axis is None else axis, reverse=not reverse)
    return cast_like(reshape_like(gradient, x_like) if axis is None else gradient, x_like)


@cumsum.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, axis: int | None, dtype: str | None, reverse: bool) -> OnnxResult:
    wide = onnx.Cast(x, to=dtype or _wide(x.dtype))
    if axis is not None and x.rank:
        return onnx.CumSum(wide, np.int64(axis), reverse=reverse)
    sums = onnx.CumSum(onnx.Reshape(wide, [-1]), np.int64(0), reverse=reverse and axis is not None)
    return sums if axis is None else onnx.Reshape(sums, [])


def _infer_cumprod(x: Spec, *, dim: int | None = None, dtype: str | None = None) -> Spec:
    if dim is None:
        return Spec((count(x.shape),), dtype or x.dtype)
    normal_axis(dim, len(x.shape))
    return Spec(x.shape, dtype or x.dtype)


@public(method=True, in_place=True)
@operator(_infer_cumprod)
def cumprod(x: Array, *, dim: int | None = None, dtype: str | None = None) -> Results:
    """Cumulative product along an axis, or of the flattened value."""
    kind = np.dtype(dtype) if dtype else x.dtype
    if dim is None:
        x, dim = np.ravel(x), 0
    return np.cumprod(x, dim, kind) if x.ndim else x.astype(kind)


@cumprod.gradient
def _(x: Value, out: Value, dout: Value, dim: int | None) -> Gradients:
    along = 0 if dim is None else dim
    dout, flat = cast_like(dout, x), reshape_like(x, out)
    zero = flat == 0
    first_zero = logical_and(zero, cumsum(zero, axis=along) == 1)
    others = cumprod(where(first_zero, 1.0, flat), dim=along)  # at the first zero: the products of the other elements
    through_zero = cumsum(dout * others, axis=along, reverse=True)
    through = cumsum(dout * out, axis=along, reverse=True) / where(zero, 1.0, flat)
    return reshape_like(where(first_zero, through_zero, where(zero, 0.0, through)), x)


@cumprod.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, dim: int | None, dtype: str | None) -> OnnxResult:
    kind = onnx.Cast(x, to=dtype or x.dtype)
    if dim is not None and not x.rank:
        return kind
    line = onnx.Reshape(kind, [-1]) if dim is None else kind
    rank, along = (1, 0) if dim is None else (x.rank, normal_axis(dim, x.rank))
    places = onnx.counted(onnx.Shape(line, start=along, end=along + 1))
    earlier = onnx.LessOrEqual(places, onnx.Unsqueeze(places, [1]))  # one row per index: the elements up to it
    earlier = onnx.Unsqueeze(earlier, list(range(2, 1 + rank - along))) if rank - along > 1 else earlier
    chosen = onnx.Where(earlier, onnx.Unsqueeze(line, [along]), np.ones((), dtype or x.dtype))
    return onnx.ReduceProd(chosen, [along + 1], keepdims=0)


@public(method=True)
def logcumsumexp(x: Value, axis: int | None = None, dtype: DTypeLike | None = None, name: str | None = None) -> Applied:
    """Logarithm of the cumulative sum of exp(x) along an axis."""
    from app.ops.math import exp, log
    from app.ops.reduction import max_

    top = max_(x).detach()
    return log(cumsum(exp(x - top), axis, dtype)) + top


@public(method=True)
def diff(
    x: Value,
    n: int = 1,
    axis: int = -1,
    prepend: Value | None = None,
    append: Value | None = None,
    name: str | None = None,
) -> Applied:
    """n-th difference of adjacent elements along an axis."""
    parts = [part for part in (prepend, x, append) if part is not None]
    out = concat(parts, axis) if len(parts) > 1 else x
    before: list[slice] = [slice(None)] * len(x.shape)
    after = list(before)
    before[axis], after[axis] = slice(None, -1), slice(1, None)
    for _ in range(n):
        later, earlier = out[tuple(after)], out[tuple(before)]
        out = later != earlier if out.dtype == "bool" else later - earlier
    return out
