"""Softmax and log-softmax."""

from __future__ import annotations

import numpy as np

from app.ops.definition import operator
from app.ops.elementwise import floats
from app.ops.lowering import Filling
from app.ops.math import exp
from app.ops.public import public
from app.ops.reduction import sum_
from app.ops.spec import Spec, normal_axis
from app.ops.values import Array, Attributes, Gradients, Results, Value

LOWEST = 64.0
"""Finite differences from the maximum are clipped at -LOWEST, as in Paddle, so that no probability of them is 0."""


SUMMED = 16
"""So many elements are summed in sequence, as in NumPy; the partial sums are added with compensation."""


def _infer_softmax(x: Spec, *, axis: int = -1) -> Spec:
    normal_axis(axis, len(x.shape))
    return x


def _over_last_axis(attributes: Attributes, rank: int) -> bool:
    return rank == 2 and attributes["axis"] in (-1, 1)


def _filling(log: bool) -> Filling:
    """The lowering of softmax or log-softmax; `log` is a constant when Numba compiles the function."""

    def fill(x: Array, out: Array, axis: int) -> bool:
        rows, columns = x.shape
        for i in range(rows if columns else 0):
            top = x[i, 0]
            for j in range(columns):
                if x[i, j] > top:
                    top = x[i, j]
            total = lost = top * 0
            for first in range(0, columns, SUMMED):
                part = top * 0
                last = first + SUMMED if first + SUMMED < columns else columns
                for j in range(first, last):
                    below = x[i, j] - top
                    if -np.inf < below < -LOWEST:
                        below = -LOWEST
                    out[i, j] = np.exp(below)
                    part += out[i, j]
                after = total + part  # its rounding error is added at the end
                lost += (total - (after - (after - total))) + (part - (after - total))
                total = after
            total += lost
            for j in range(columns):
                if log:
                    out[i, j] = x[i, j] - top - np.log(total)
                else:
                    out[i, j] /= total
        return True

    return Filling(fill, row_by_row=True, fits=_over_last_axis)


@public(method=True)
@operator(
    _infer_softmax,
    prepare=floats,
    lowering=_filling(log=False),
    onnx=lambda onnx, x, axis: onnx.Softmax(x, axis=axis) if x.rank else onnx.constant(1, x.dtype),
)
def softmax(x: Array, *, axis: int = -1) -> Results:
    """Softmax along an axis: exp(x) / sum(exp(x))."""
    if not x.size:
        return x.copy()
    below = x - np.max(x, axis=axis, keepdims=True)
    e = np.exp(np.where(below == -np.inf, below, np.maximum(below, x.dtype.type(-LOWEST))))
    return e / np.sum(e, axis=axis, keepdims=True)


@softmax.gradient
def _(out: Value, dout: Value, axis: int) -> Gradients:
    weighted = dout * out
    return weighted - out * sum_(weighted, axis=axis, keepdim=True)


@public(method=True)
@operator(
    _infer_softmax,
    prepare=floats,
    lowering=_filling(log=True),
    gradient=lambda out, dout, axis: dout - exp(out) * sum_(dout, axis=axis, keepdim=True),
    onnx=lambda onnx, x, axis: onnx.LogSoftmax(x, axis=axis) if x.rank else onnx.constant(0, x.dtype),
)
def log_softmax(x: Array, *, axis: int = -1) -> Results:
    """Logarithm of softmax along an axis, accurate where softmax rounds to 0."""
    if not x.size:
        return x.copy()
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
