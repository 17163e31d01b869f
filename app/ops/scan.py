"""Cumulative sums along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.definition import operator
from app.ops.dtype import INTEGERS
from app.ops.public import public
from app.ops.shaping import cast, reshape_like
from app.ops.spec import Spec, count, normal_axis
from app.ops.values import Array, Gradients, Results, Value


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
        normal_axis(axis, 0)
        return x.astype(wide)
    if reverse:
        return np.flip(np.cumsum(np.flip(x, axis), axis, wide), axis)
    return np.cumsum(x, axis, wide)


@cumsum.gradient
def _(x_like: Value, dout: Value, axis: int | None, reverse: bool) -> Gradients:
    gradient = cumsum(dout, axis=0 if axis is None else axis, reverse=not reverse)
    return cast(reshape_like(gradient, x_like) if axis is None else gradient, dtype=x_like.dtype)


@cumsum.in_onnx
def _(onnx: Any, x: Any, axis: int | None, dtype: str | None, reverse: bool) -> Any:
    wide = onnx.Cast(x, to=dtype or _wide(x.dtype))
    if axis is not None and x.rank:
        return onnx.CumSum(wide, np.int64(axis), reverse=reverse)
    sums = onnx.CumSum(onnx.Reshape(wide, [-1]), np.int64(0), reverse=reverse and axis is not None)
    return sums if axis is None else onnx.Reshape(sums, [])
