"""Selecting slices and elements by arrays of indices and masks."""

from __future__ import annotations

import numpy as np

from app.errors import DtypeError, ShapeError
from app.ops.broadcasting import broadcast_tensors
from app.ops.definition import operator
from app.ops.dtype import INTEGERS, canonical
from app.ops.indexing import Items, along, on_axis, put_items, take_items
from app.ops.logic import where
from app.ops.lowering import Filling
from app.ops.public import PUBLIC, public
from app.ops.shaping import cast, reshape
from app.ops.spec import Spec, normal_axis
from app.ops.values import Applied, Array, Gradients, Operand, Value


def _infer_gather(x: Spec, index: Spec, *, axis: int | None = 0) -> Spec:
    if index.dtype not in INTEGERS:
        raise DtypeError(f"an index array must contain integers, found {index.dtype}")
    if not x.shape:
        raise ShapeError("a scalar has no axis to gather along")
    along = normal_axis(axis or 0, len(x.shape))
    return Spec((*x.shape[:along], *index.shape, *x.shape[along + 1 :]), x.dtype)


def _fill_gathered(x: Array, index: Array, out: Array, axis: int | None) -> bool:
    places, source, target = index.reshape(index.size), x.reshape(x.size), out.reshape(out.size)
    count = x.shape[0]
    width = source.size // max(count, 1)
    for i in range(places.size):
        place = places[i]
        if place < -count or place >= count:
            return False
        first = (place + count if place < 0 else place) * width
        for j in range(width):
            target[i * width + j] = source[first + j]
    return True


@operator(
    _infer_gather,
    checked=True,
    lowering=Filling(
        _fill_gathered,
        row_by_row=False,
        problem="an index is out of bounds",
        fits=lambda attributes, rank: rank > 0 and (attributes["axis"] or 0) % rank == 0,
    ),
    onnx=lambda onnx, x, index, axis: onnx.Gather(x, index, axis=axis or 0),
)
def gather(x: Array, index: Array, *, axis: int | None = 0) -> Array:
    """Gather slices along an axis by an array of indices."""
    slices: Array = np.take(x, index, axis or 0)
    return slices


@gather.gradient_of("x")
def _(x_like: Value, index: Value, dout: Value, axis: int | None) -> Gradients:
    items = on_axis(normal_axis(axis or 0, len(x_like.shape)))
    return put_items([x_like, dout, index], items=items, accumulate=True, onto_zeros=True)


@public(name="gather", method=True)
def gather_slices(x: Value, index: Value, axis: int | None = 0) -> Applied:
    """Gather slices along an axis by an array of indices. A column of indices counts as a list."""
    is_column = list(getattr(index, "shape", ())[1:]) == [1]
    return gather(x, reshape(index, [-1]) if is_column else index, axis=axis)


gather.public = PUBLIC["gather"]  # its own form keeps every axis of the indices


def _check_integers(index: Value) -> None:
    if canonical(index.dtype) not in INTEGERS:
        raise DtypeError(f"an index array must contain integers, found {canonical(index.dtype)}")


# Elements by indices along an axis


def _items_along(x: Value, index: Value, axis: int) -> Items:
    """The items of a checked index along an axis."""
    _check_integers(index)
    if len(x.shape) != len(index.shape):
        raise ShapeError(
            f"the index must have as many axes as the value, found {list(index.shape)} for {list(x.shape)}"
        )
    return along(normal_axis(axis, len(x.shape)))


def _broadcast_except(x: Value, other: Value, axis: int) -> Applied:
    """Broadcast a value to the shape of another along all axes but `axis`."""
    axis = normal_axis(axis, len(x.shape))
    if all(a == axis or size == other.shape[a] for a, size in enumerate(x.shape)):
        return x
    one = take_items([other], items=(*[("slice", None, None, None)] * axis, ("slice", 0, 1, None)))
    return broadcast_tensors([x, one])[0]


@public(method=True)
def take_along_axis(x: Value, index: Value, axis: int, broadcast: bool = True) -> Applied:
    """Elements selected by an array of indices along an axis.

    The other axes broadcast. Without `broadcast`, the index may be shorter than the value along these.
    """
    items = _items_along(x, index, axis)
    if broadcast:
        x, index = _broadcast_except(x, index, axis), _broadcast_except(index, x, axis)
    return take_items([x, index], items=items)


# By masks


@public(method=True, in_place=True)
def masked_fill(x: Value, mask: Value, value: Operand) -> Applied:
    """Replace the elements where a mask is true by `value`."""
    fill = cast(value, dtype=x.dtype) if hasattr(value, "dtype") else np.asarray(value, canonical(x.dtype))
    return where(mask, fill, x)
