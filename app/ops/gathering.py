"""Gathering and scattering: selecting, replacing and adding to slices and elements by arrays of indices.

All but `gather`, which has a lowering of its own, are composed of `take_items` and `put_items`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.errors import BoundsError, DtypeError, ShapeError
from app.ops.broadcasting import broadcast_tensors
from app.ops.definition import operator
from app.ops.dtype import INTEGERS, canonical
from app.ops.elementwise import to_common_type
from app.ops.indexing import ROWS, Items, along, index_items, on_axis, put_items, take_items
from app.ops.logic import where
from app.ops.lowering import Filling
from app.ops.public import PUBLIC, public
from app.ops.shaping import cast, reshape
from app.ops.spec import UNKNOWN, Spec, normal_axis
from app.ops.values import Applied, Array, Gradients, Operand, Results, Value


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
    found: Array = np.take(x, index, axis or 0)
    return found


@gather.gradient_of("x")
def _(x_like: Value, index: Value, dout: Value, axis: int | None) -> Gradients:
    items = on_axis(normal_axis(axis or 0, len(x_like.shape)))
    return put_items([x_like, dout, index], items=items, accumulate=True, onto_zeros=True)


@public(name="gather", method=True)
def gather_slices(x: Value, index: Value, axis: int | None = 0, name: str | None = None) -> Applied:
    """Gather slices along an axis by an array of indices. A column of indices, as of `nonzero`, counts as a list."""
    is_column = list(getattr(index, "shape", ())[1:]) == [1]
    return gather(x, reshape(index, [-1]) if is_column else index, axis=axis)


gather.public = PUBLIC["gather"]  # its own form is for embeddings, which keep every axis of their indices


def _fill_from_start(index: Array, out: Array) -> bool:
    places, target = index.reshape(index.size), out.reshape(out.size)
    for i in range(places.size):
        if places[i] < 0:
            return False
        target[i] = places[i]
    return True


@operator(
    lambda index: index,
    lowering=Filling(_fill_from_start, row_by_row=False, problem="indices are 0 or more"),
    onnx="Identity",
)
def from_start(index: Array) -> Results:
    """The same indices. Negative ones, which would count from the end, are refused."""
    if np.min(index, initial=0) < 0:
        raise BoundsError(f"indices are 0 or more, found {np.min(index)}; x[index] also counts from the end")
    return index.copy()


def _check_integers(index: Value) -> None:
    if canonical(index.dtype) not in INTEGERS:
        raise DtypeError(f"an index array must contain integers, found {canonical(index.dtype)}")


# Slices along an axis


@public(method=True)
def index_select(x: Value, index: Value, axis: int = 0, name: str | None = None) -> Applied:
    """Select slices along an axis by an array of indices."""
    if len(index.shape) != 1:
        raise ShapeError(f"index_select: the index needs one axis, found shape {list(index.shape)}; use opsmith.gather")
    return gather(x, index, axis=axis)


@public(method=True, in_place=True)
def index_add(x: Value, index: Value, axis: int, value: Value, name: str | None = None) -> Applied:
    """Add `value` to the slices of `x` along an axis that `index` selects."""
    _check_integers(index)
    x, value = to_common_type([x, value])
    return put_items([x, value, index], items=on_axis(normal_axis(axis, len(x.shape))), accumulate=True)


@public(method=True, in_place=True)
def scatter(x: Value, index: Value, updates: Value, overwrite: bool = True, name: str | None = None) -> Applied:
    """Replace the rows of `x` that `index` selects by `updates`, or without `overwrite` by the sum for each row."""
    _check_integers(index)
    x, updates = to_common_type([x, updates])
    rows = reshape(index, [-1])
    if overwrite:
        return put_items([x, updates, rows], items=ROWS)
    emptied = put_items([x, np.zeros((), canonical(x.dtype)), rows], items=ROWS)
    return put_items([emptied, updates, rows], items=ROWS, accumulate=True)


@public(method=True)
def slice_(input: Value, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> Applied:
    """Slice along the given axes, from `starts` to `ends`."""
    parts = [slice(None)] * len(input.shape)
    for axis, start, end in zip(axes, starts, ends, strict=True):
        parts[normal_axis(int(axis), len(parts))] = slice(int(start), int(end))
    return take_items([input], items=index_items(tuple(parts))[1])


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


@public(method=True, in_place=True)
def put_along_axis(
    arr: Value,
    indices: Value,
    values: Operand,
    axis: int,
    reduce: str = "assign",
    include_self: bool = True,
    broadcast: bool = True,
) -> Applied:
    """Replace, or with reduce="add" add to, the elements selected by an array of indices along an axis.

    The other axes broadcast. Without `broadcast`, the index may be shorter than the value along these.
    """
    items = _items_along(arr, indices, axis)
    if reduce not in ("assign", "add") or not include_self:
        raise ShapeError(f"put_along_axis: reduce must be 'assign' or 'add', not {reduce!r}")
    arr, values = to_common_type([arr, values])
    indices = _broadcast_except(indices, arr, axis) if broadcast else indices
    return put_items([arr, values, indices], items=items, accumulate=reduce == "add")


# By masks


@public(method=True)
def masked_select(x: Value, mask: Value, name: str | None = None) -> Applied:
    """Elements where a mask is true, in row-major order."""
    if mask.dtype != "bool":
        raise DtypeError(f"masked_select: the mask must contain booleans, found {mask.dtype}; write mask != 0")
    if tuple(x.shape) != tuple(mask.shape):
        x, mask = broadcast_tensors([x, mask])
    return take_items([x, mask], items=ROWS)


@public(method=True, in_place=True)
def masked_fill(x: Value, mask: Value, value: Operand, name: str | None = None) -> Applied:
    """Replace the elements where a mask is true by `value`."""
    fill = cast(value, dtype=x.dtype) if hasattr(value, "dtype") else np.asarray(value, canonical(x.dtype))
    return where(mask, fill, x)


@operator(lambda x: Spec((UNKNOWN, len(x.shape)), "int64"))
def places_of_nonzero(x: Array) -> Results:
    """Indices of the nonzero elements, one row for each."""
    return np.argwhere(x)


@public(method=True)
def nonzero(x: Value, as_tuple: bool = False) -> Applied:
    """Indices of the nonzero elements: one row for each, or with `as_tuple` one value for each axis."""
    places = places_of_nonzero(x)
    return tuple(places[:, axis] for axis in range(len(x.shape))) if as_tuple else places


@public(method=True)
def where_(condition: Value, x: Value | None = None, y: Value | None = None, name: str | None = None) -> Applied:
    """Elements of `x` where `condition` is true, else of `y`; without `x` and `y`, the indices where it is true."""
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    return where(condition, x, y)
