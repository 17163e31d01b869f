"""Norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from app.errors import OperatorError
from app.ops.definition import operator
from app.ops.elementwise import floats
from app.ops.logic import where
from app.ops.math import abs_
from app.ops.public import public
from app.ops.reduction import expand_reduced, infer_reduction, reduced_in_onnx, sum_
from app.ops.rounding import sign
from app.ops.shaping import cast
from app.ops.spec import Axis, Spec, reduced_axes
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
    whole = expand_reduced(out, x, axis=axis, keepdim=keepdim)
    upstream = expand_reduced(dout, x, axis=axis, keepdim=keepdim)
    if p == 0:
        return upstream * 0.0
    if math.isinf(p):
        chosen = cast(abs_(x) == whole, dtype=x.dtype)
        count = expand_reduced(sum_(chosen, axis, None, keepdim), x, axis=axis, keepdim=keepdim)
        return upstream * sign(x) * chosen / count
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
def norm(x: Value, p: float | str | None = None, axis: Axis = None, keepdim: bool = False) -> Applied:
    """Norm along the given axes, or of the flattened value; the 2-norm by default.

    Along two axes it is the Frobenius norm of matrices.
    """
    if isinstance(p, str) and p != "fro":
        raise OperatorError(f"norm: p is a number or 'fro', not {p!r}")
    if isinstance(axis, (tuple, list)) and len(axis) == 2 and p not in (None, "fro"):
        raise OperatorError(
            f"norm: of matrices, along two axes, p is 'fro', not {p!r}; np.linalg.norm(x.numpy(), {p!r}) computes it"
        )
    return p_norm(x, 2.0 if p is None or p == "fro" else float(p), axis, keepdim)
