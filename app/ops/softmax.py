"""Softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.ops.definition import operator
from app.ops.elementwise import to_common_type
from app.ops.form import Filling
from app.ops.math import exp
from app.ops.public import public
from app.ops.reduction import check_not_empty, sum_
from app.ops.spec import Spec, count, normal_axis
from app.ops.values import Array, Gradients, OnnxNodes, OnnxResult, OnnxValue, Results, Value

LOWEST = 64
"""How far below the largest a value counts at most, as in Paddle: no probability is 0, so its logarithm is a number."""


SUMMED = 16
"""So many numbers of a row are added one after the other, as NumPy does; the sums of all are then added exactly."""


def _infer_softmax(x: Spec, *, axis: int = -1) -> Spec:
    along = normal_axis(axis, len(x.shape))
    if x.shape and count(x.shape[:along] + x.shape[along + 1 :]) != 0:
        check_not_empty(x.shape, [along])
    return x


def _floating(values: list[Any]) -> list[Any]:
    return to_common_type(values, floating=True)


def _over_last_axis(attributes: Mapping[str, Any], rank: int) -> bool:
    return rank == 2 and attributes["axis"] in (-1, 1)


def _filling(log: bool) -> Filling:
    """The form of softmax, or of its logarithm; which of them is a constant to what compiles the function."""

    def fill(x: Any, out: Any, axis: int) -> bool:
        for i in range(x.shape[0]):
            top = x[i, 0]
            for j in range(x.shape[1]):
                top = max(top, x[i, j])
            total = top * 0
            lost = top * 0
            for first in range(0, x.shape[1], SUMMED):
                part = top * 0
                for j in range(first, min(first + SUMMED, x.shape[1])):
                    below = x[i, j] - top
                    if below < -LOWEST:
                        below = below * 0 - LOWEST
                    out[i, j] = np.exp(below)
                    part += out[i, j]
                after = total + part  # and what rounding takes from it is added in the end
                lost += (total - (after - (after - total))) + (part - (after - total))
                total = after
            total += lost
            for j in range(x.shape[1]):
                if log:
                    out[i, j] = x[i, j] - top - np.log(total)
                else:
                    out[i, j] /= total
        return True

    return Filling(fill, row_by_row=True, fits=_over_last_axis)


@public(method=True)
@operator(_infer_softmax, prepare=_floating, form=_filling(log=False))
def softmax(x: Array, *, axis: int = -1) -> Results:
    """Positive numbers that sum to 1 along an axis, in the proportions of exp(x)."""
    e = np.exp(np.maximum(x - np.max(x, axis=axis, keepdims=True), x.dtype.type(-LOWEST)))
    return e / np.sum(e, axis=axis, keepdims=True)


@softmax.gradient
def _(out: Value, dout: Value, axis: int) -> Gradients:
    weighted = dout * out
    return weighted - out * sum_(weighted, axis=axis, keepdim=True)


@softmax.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, axis: int) -> OnnxResult:
    return onnx.Softmax(x, axis=axis) if x.rank else onnx.constant(1, x.dtype)


@public(method=True)
@operator(_infer_softmax, prepare=_floating, form=_filling(log=True))
def log_softmax(x: Array, *, axis: int = -1) -> Results:
    """The logarithm of softmax, exact where softmax itself would be rounded to 0."""
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@log_softmax.gradient
def _(out: Value, dout: Value, axis: int) -> Gradients:
    return dout - exp(out) * sum_(dout, axis=axis, keepdim=True)


@log_softmax.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, axis: int) -> OnnxResult:
    return onnx.LogSoftmax(x, axis=axis) if x.rank else onnx.constant(0, x.dtype)
