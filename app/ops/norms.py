"""Norms of vectors and matrices, and distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import OperatorError, ShapeError
from app.ops.definition import operator
from app.ops.elementwise import floats
from app.ops.logic import where
from app.ops.math import abs_
from app.ops.public import public
from app.ops.reduction import infer_reduction, max_, min_, reduced_in_onnx, spread, sum_
from app.ops.rounding import sign
from app.ops.shaping import cast, squeeze
from app.ops.spec import Axis, Spec, normal_axis, reduced_axes
from app.ops.values import Applied, Array, Gradients, Results, Value


def _infer_norm(x: Spec, *, p: float = 2.0, axis: Axis = None, keepdim: bool = False) -> Spec:
    return infer_reduction(x, axis=axis, keepdim=keepdim)


@operator(_infer_norm, prepare=floats)
def p_norm(x: Array, *, p: float = 2.0, axis: Axis = None, keepdim: bool = False) -> Results:
    """p-norm along the given axes: sum(abs(x) ** p) ** (1 / p); the largest absolute value for p = inf."""
    axis = axis if x.ndim else reduced_axes(axis, 0)
    sizes = np.abs(x)
    if math.isinf(p):
        return (np.max if p > 0 else np.min)(sizes, axis=axis, keepdims=keepdim)
    if p == 0:
        return np.sum(sizes != 0, axis=axis, keepdims=keepdim, dtype=x.dtype)
    if x.dtype == np.float16:  # the powers would overflow
        sizes = sizes.astype(np.float32)
    total = np.sum(sizes**p, axis=axis, keepdims=keepdim, dtype=sizes.dtype) ** sizes.dtype.type(1.0 / p)
    return total.astype(x.dtype, copy=False)


@p_norm.gradient
def _(x: Value, out: Value, dout: Value, p: float, axis: Axis, keepdim: bool) -> Gradients:
    whole = spread(out, x, axis=axis, keepdim=keepdim)
    upstream = spread(dout, x, axis=axis, keepdim=keepdim)
    if p == 0:
        return upstream * 0.0
    if math.isinf(p):
        chosen = cast(abs_(x) == whole, dtype=x.dtype)
        return upstream * sign(x) * chosen / spread(sum_(chosen, axis, None, keepdim), x, axis=axis, keepdim=keepdim)
    if p == 1:
        return upstream * sign(x)
    safe = where(whole == 0, 1.0, whole)  # at zero the gradient is zero
    if p == 2:
        return where(whole == 0, 0.0, upstream * x / safe)
    ratio = where(x == 0, 1.0, abs_(x)) / safe
    return where(x == 0, 0.0, upstream * sign(x) * ratio ** (p - 1.0))


@p_norm.in_onnx
def _(onnx: Any, x: Any, p: float, axis: Axis, keepdim: bool) -> Any:
    sizes, axes = onnx.Abs(x), reduced_axes(axis, x.rank)
    if math.isinf(p):
        return reduced_in_onnx(onnx, "ReduceMax" if p > 0 else "ReduceMin", sizes, axes, keepdim)
    powers = onnx.Cast(onnx.Less(0, sizes), to=x.dtype) if p == 0 else onnx.Pow(sizes, p)
    total = reduced_in_onnx(onnx, "ReduceSum", powers, axes, keepdim)
    return total if p == 0 else onnx.Pow(total, 1.0 / p)


@public(method=True)
def vector_norm(x: Value, p: float = 2.0, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Applied:
    """Vector p-norm along the given axes, or of the flattened value."""
    return p_norm(x, float(p), axis, keepdim)


_AXES = (-2, -1)


@public(method=True)
def matrix_norm(
    x: Value, p: float | str = "fro", axis: Sequence[int] = _AXES, keepdim: bool = False, name: str | None = None
) -> Applied:
    """Matrix norm along two axes.

    `p` is 'fro' for the Frobenius norm, 1 for the largest and -1 for the smallest column sum of absolute values, and
    inf and -inf for the largest and smallest row sum.
    """
    if len(x.shape) < 2 or len(axis) != 2:
        raise ShapeError(f"matrix_norm needs two axes, found {list(axis)} of shape {list(x.shape)}")
    if p == "fro":
        return p_norm(x, 2.0, tuple(axis), keepdim)
    if p not in (1, -1, math.inf, -math.inf):
        raise OperatorError(
            f"matrix_norm: p is 'fro', 1, -1 or an infinity, not {p!r}; np.linalg.norm(x.numpy(), {p!r}) computes it"
        )
    rows, columns = (normal_axis(a, len(x.shape)) for a in axis)
    sums = sum_(abs_(x), axis=rows if math.fabs(p) == 1 else columns, keepdim=True)
    largest = (max_ if p > 0 else min_)(sums, axis=columns if math.fabs(p) == 1 else rows, keepdim=True)
    return largest if keepdim else squeeze(largest, axis=[rows, columns])


@public(method=True)
def norm(
    x: Value, p: float | str | None = None, axis: Axis = None, keepdim: bool = False, name: str | None = None
) -> Applied:
    """Norm along the given axes, or of the flattened value; the 2-norm by default.

    With `p` and two axes it is a matrix norm (see `matrix_norm`).
    """
    if p is not None and isinstance(axis, (tuple, list)) and len(axis) == 2:
        return matrix_norm(x, p, axis, keepdim)
    if isinstance(p, str) and p != "fro":
        raise OperatorError(f"norm: p is a number or 'fro', not {p!r}")
    return p_norm(x, 2.0 if p is None or p == "fro" else float(p), axis, keepdim)
