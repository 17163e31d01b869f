"""The order of values along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.definition import operator
from app.ops.public import public
from app.ops.spec import Spec, normal_axis
from app.ops.values import Array, Results


def _infer_argsort(x: Spec, *, axis: int = -1, descending: bool = False) -> Spec:
    normal_axis(axis, len(x.shape))
    return Spec(x.shape, "int64")


@public(method=True)
@operator(_infer_argsort)
def argsort(x: Array, *, axis: int = -1, descending: bool = False) -> Results:
    """Indices that sort a value along an axis; ties keep their order."""
    if not x.ndim:
        normal_axis(axis, 0)
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(x, axis, kind="stable")
    reverse = np.flip(x, axis)  # flipping before and after the sort keeps the order of equal elements
    return np.flip(x.shape[axis] - 1 - np.argsort(reverse, axis, kind="stable"), axis)


@argsort.in_onnx
def _(onnx: Any, x: Any, axis: int, descending: bool) -> Any:
    if not x.rank:
        return onnx.constant(0, "int64")
    # ONNX's TopK keeps the order of equal elements
    return onnx.TopK(x, onnx.length(x, axis), axis=axis, largest=descending)[1]
