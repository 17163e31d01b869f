"""Sorting and top-k."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from app.errors import ShapeError
from app.ops.definition import operator
from app.ops.indexing import along, put_items
from app.ops.public import PUBLIC, public
from app.ops.spec import UNKNOWN, Spec, normal_axis
from app.ops.values import Applied, Array, Gradient, Results, Value


class TopK(NamedTuple):
    """The result of `topk`: values, and their indices along the axis."""

    values: Applied
    indices: Applied


def _infer_sort(x: Spec, *, axis: int = -1, descending: bool = False, stable: bool = False) -> tuple[Spec, Spec]:
    normal_axis(axis, len(x.shape))
    return x, Spec(x.shape, "int64")


def _order(x: Array, axis: int, descending: bool) -> Array:
    """The indices that sort the values, stably."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    turned = np.flip(x, axis)  # flipping before and after the sort keeps the order of equal elements
    return np.flip(x.shape[axis] - 1 - np.argsort(turned, axis, kind="stable"), axis)


@operator(
    _infer_sort,
    outputs=("out", "index"),
    optional_gradients=True,
    gradient=lambda x_like, index, dout, axis: _put_back(dout, index, x_like, axis) if x_like.shape else dout,
)
def sort(x: Array, *, axis: int = -1, descending: bool = False, stable: bool = False) -> Results:
    """Sorted values along an axis, and their indices."""
    if not x.ndim:
        normal_axis(axis, 0)
        return x.copy(), np.zeros((), np.int64)
    places = _order(x, axis, descending)
    return np.take_along_axis(x, places, axis), places


def _put_back(dout: Gradient, index: Value, x_like: Value, axis: int) -> Gradient:
    """Zeros in the shape of the input, with the gradient scattered to the indices of the selected elements."""
    if dout is None:
        return None
    places = along(normal_axis(axis, len(x_like.shape)))
    return put_items([x_like, dout, index], items=places, accumulate=True, onto_zeros=True)


@sort.in_onnx
def _(onnx: Any, x: Any, axis: int, descending: bool) -> Any:
    if not x.rank:
        return x, onnx.constant(0, "int64")
    return onnx.TopK(
        x, onnx.length(x, axis), axis=axis, largest=descending
    )  # ONNX's TopK keeps the order of equal elements


@public(name="sort", method=True)
def sort_values(x: Value, axis: int = -1, descending: bool = False, stable: bool = False) -> Applied:
    """Sorted values along an axis; ties keep their order."""
    return sort(x, axis, descending, stable)[0]


sort.public = PUBLIC["sort"]  # its own form also returns the indices


@public(method=True)
def argsort(x: Value, axis: int = -1, descending: bool = False, stable: bool = False) -> Applied:
    """Indices that sort a value along an axis; ties keep their order."""
    return sort(x, axis, descending, stable)[1]


def _infer_topk(x: Spec, *, k: int = 1, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Spec, Spec]:
    along = normal_axis(axis, len(x.shape))
    size = x.shape[along] if x.shape else 0
    if k < 1 or (isinstance(size, int) and size != UNKNOWN and k > size):
        raise ShapeError(f"there are no {k} values along axis {axis} of a value of shape {list(x.shape)}")
    shape = (*x.shape[:along], k, *x.shape[along + 1 :])
    return Spec(shape, x.dtype), Spec(shape, "int64")


@operator(
    _infer_topk,
    outputs=("out", "index"),
    optional_gradients=True,
    checked=True,
    gradient=lambda x_like, index, dout, axis: _put_back(dout, index, x_like, axis),
    onnx=lambda onnx, x, k, axis, largest: onnx.TopK(x, [k], axis=axis, largest=largest),
)
def topk(x: Array, *, k: int = 1, axis: int = -1, largest: bool = True, sorted: bool = True) -> Results:
    """The k largest or smallest values along an axis in order, and their indices."""
    places = np.take(_order(x, axis, largest), range(k), axis)
    return np.take_along_axis(x, places, axis), places


@public(name="topk", method=True)
def topk_of_axis(x: Value, k: int, axis: int | None = None, largest: bool = True, sorted: bool = True) -> TopK:
    """The k largest values along an axis in order, and their indices; the smallest with largest=False."""
    return TopK(*topk(x, int(k), -1 if axis is None else axis, largest, sorted))


topk.public = PUBLIC["topk"]
