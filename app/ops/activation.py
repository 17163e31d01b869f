"""Activation functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.ops.definition import operator
from app.ops.elementwise import elementwise, to_common_type
from app.ops.form import Filling
from app.ops.logic import where
from app.ops.math import exp
from app.ops.reduction import sum
from app.ops.spec import Spec, normal_axis


@elementwise(scalar=lambda x: type(x)(0) if x <= 0 else x)
def relu(x: Any) -> Any:
    """The value where it is above zero, else zero."""
    return np.maximum(x, x.dtype.type(0))


@relu.gradient
def _(out: Any, dout: Any) -> Any:
    return where(out > 0, dout, 0.0)


@elementwise(floating=True, scalar=lambda x, slope: x if x > 0 else x * slope)
def leaky_relu(x: Any, *, negative_slope: float = 0.01) -> Any:
    """The value where it is above zero, else a small part of it."""
    return np.where(x > 0, x, x * x.dtype.type(negative_slope))


@leaky_relu.gradient
def _(x: Any, dout: Any, negative_slope: float) -> Any:
    return where(x > 0, dout, dout * negative_slope)


@elementwise(floating=True)
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), through tanh, which does not overflow."""
    return 0.5 * np.tanh(0.5 * x) + 0.5


@sigmoid.gradient
def _(out: Any, dout: Any) -> Any:
    return dout * out * (1.0 - out)


@elementwise(floating=True, scalar=lambda x: (type(x)(0) if x < 0 else x) + np.log1p(np.exp(-abs(x))))
def softplus(x: Any) -> Any:
    """log(1 + exp(x)), a smooth relu."""
    return np.maximum(x, x.dtype.type(0)) + np.log1p(np.exp(-np.abs(x)))


@softplus.gradient
def _(x: Any, dout: Any) -> Any:
    return dout * sigmoid(x)


@elementwise(floating=True)
def silu(x: Any) -> Any:
    """x * sigmoid(x), also called swish."""
    return x * (0.5 * np.tanh(0.5 * x) + 0.5)


@silu.gradient
def _(x: Any, dout: Any) -> Any:
    s = sigmoid(x)
    return dout * (s + x * s * (1.0 - s))


@elementwise(floating=True, scalar=lambda x, alpha: x if x > 0 else alpha * np.expm1(x))
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    """The value where it is above zero, else alpha * (exp(x) - 1)."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, x.dtype.type(0))))


@elu.gradient
def _(x: Any, out: Any, dout: Any, alpha: float) -> Any:
    return where(x > 0, dout, dout * (out + alpha))


def _infer_softmax(x: Spec, *, axis: int = -1) -> Spec:
    normal_axis(axis, len(x.shape))
    return x


def _floating(values: list[Any]) -> list[Any]:
    return to_common_type(values, floating=True)


def _over_last_axis(attributes: Mapping[str, Any], rank: int) -> bool:
    return rank == 2 and attributes["axis"] in (-1, 1)


def _fill_softmax(x: Any, out: Any, axis: int) -> bool:
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = top * 0
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return True


def _fill_log_softmax(x: Any, out: Any, axis: int) -> bool:
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = top * 0
        for j in range(x.shape[1]):
            total += np.exp(x[i, j] - top)
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] - top - np.log(total)
    return True


@operator(_infer_softmax, prepare=_floating, form=Filling(_fill_softmax, row_by_row=True, fits=_over_last_axis))
def softmax(x: Any, *, axis: int = -1) -> Any:
    """Positive numbers that sum to 1 along an axis, in the proportions of exp(x)."""
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


@softmax.gradient
def _(out: Any, dout: Any, axis: int) -> Any:
    weighted = dout * out
    return weighted - out * sum(weighted, axis=axis, keepdim=True)


@operator(_infer_softmax, prepare=_floating, form=Filling(_fill_log_softmax, row_by_row=True, fits=_over_last_axis))
def log_softmax(x: Any, *, axis: int = -1) -> Any:
    """The logarithm of softmax, exact where softmax itself would be rounded to 0."""
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@log_softmax.gradient
def _(out: Any, dout: Any, axis: int) -> Any:
    return dout - exp(out) * sum(dout, axis=axis, keepdim=True)
