"""Slices and elements that arrays name: taking them, replacing them, adding to them.

All but `gather`, which has a compiled form, are made of `take_items` and `put_items`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import DtypeError, ShapeError
from app.ops.broadcasting import broadcast_tensors
from app.ops.definition import operator
from app.ops.dtype import INTEGERS, canonical
from app.ops.elementwise import to_common_type
from app.ops.form import Filling
from app.ops.indexing import ROWS, Items, along, index_items, on_axis, put_items, take_items
from app.ops.logic import equal, where
from app.ops.public import public
from app.ops.reduction import sum_
from app.ops.shaping import cast, cast_like, flatten, reshape
from app.ops.spec import UNKNOWN, Spec, normal_axis
from app.ops.values import Applied, Array, Gradients, OnnxNodes, OnnxResult, OnnxValue, Operand, Results, Value


def _infer_gather(x: Spec, index: Spec, *, axis: int | None = 0) -> Spec:
    if index.dtype not in INTEGERS:
        raise DtypeError(f"an index must be of whole numbers, found {index.dtype}")
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


@public(method=True)
@operator(
    _infer_gather,
    checked=True,
    form=Filling(
        _fill_gathered,
        row_by_row=False,
        problem="an index lies outside of the value",
        fits=lambda attributes, rank: rank > 0 and (attributes["axis"] or 0) % rank == 0,
    ),
)
def gather(x: Array, index: Array, *, axis: int | None = 0) -> Array:
    """The rows, or slices along another axis, that an array of whole numbers names."""
    found: Array = np.take(x, index, axis or 0)
    return found


@gather.gradient_of("x")
def _(x_like: Value, index: Value, dout: Value, axis: int | None) -> Gradients:
    items = on_axis(normal_axis(axis or 0, len(x_like.shape)))
    return put_items([x_like, dout, index], items=items, accumulate=True, onto_zeros=True)


@gather.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, index: OnnxValue, axis: int | None) -> OnnxResult:
    return onnx.Gather(x, index, axis=axis or 0)


def _check_whole(index: Any) -> None:
    if canonical(index.dtype) not in INTEGERS:
        raise DtypeError(f"an index must be of whole numbers, found {canonical(index.dtype)}")


# Whole slices


@public(method=True)
def index_select(x: Value, index: Value, axis: int = 0, name: str | None = None) -> Applied:
    """The slices along an axis that an array of whole numbers names."""
    return gather(x, index, axis=axis)


@public(method=True, in_place=True)
def index_add(x: Value, index: Value, axis: int, value: Value, name: str | None = None) -> Applied:
    """The value with slices added to those that an array of whole numbers names."""
    _check_whole(index)
    x, value = to_common_type([x, value])
    return put_items([x, value, index], items=on_axis(normal_axis(axis, len(x.shape))), accumulate=True)


@public(method=True, in_place=True)
def index_fill(x: Value, index: Value, axis: int, value: Value, name: str | None = None) -> Applied:
    """The value with another one at the places of an axis that `index` names."""
    place = np.arange(x.shape[axis]).reshape(
        [-1 if i == normal_axis(axis, len(x.shape)) else 1 for i in range(len(x.shape))]
    )
    chosen = equal(place[..., None], index)
    return masked_fill(x, sum_(cast(chosen, dtype="int64"), axis=-1) > 0, value)


@public(method=True, in_place=True)
def scatter(x: Value, index: Value, updates: Any, overwrite: bool = True, name: str | None = None) -> Applied:
    """The value with the rows that `index` names replaced by `updates`, or by the sum of those for a row."""
    _check_whole(index)
    x, updates = to_common_type([x, updates])
    rows = reshape(index, [-1])
    if overwrite:
        return put_items([x, updates, rows], items=ROWS)
    emptied = put_items([x, np.zeros((), canonical(x.dtype)), rows], items=ROWS)
    return put_items([emptied, updates, rows], items=ROWS, accumulate=True)


@public(method=True)
def slice_(input: Value, axes: Any, starts: Any, ends: Any) -> Applied:
    """The part between two places along each of the axes listed."""
    return strided_slice(input, axes, starts, ends, [1] * len(axes))


@public(method=True)
def strided_slice(x: Value, axes: Any, starts: Any, ends: Any, strides: Any, name: str | None = None) -> Applied:
    """The part between two places along each of the axes listed, taken in steps."""
    parts: list[Any] = [slice(None)] * len(x.shape)
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        parts[normal_axis(int(axis), len(parts))] = slice(int(start), int(end), int(stride))
    return take_items([x], items=index_items(tuple(parts))[1])


@public(method=True)
def take(x: Value, index: Value, mode: str = "raise", name: str | None = None) -> Applied:
    """The elements that an array of places in row order names."""
    return gather(flatten(x), index)


@public(method=True)
def repeat_interleave(x: Value, repeats: Any, axis: int | None = None, name: str | None = None) -> Applied:
    """Each slice along an axis, or each element, repeated."""
    along = 0 if axis is None else axis
    flat = flatten(x) if axis is None else x
    counts = np.asarray(repeats)
    return gather(flat, np.repeat(np.arange(flat.shape[along]), counts), axis=along)


# Parts whose places along the first axes are listed in the last axis of an array


def _listed(index: Any) -> tuple[list[Any], Items]:
    places = [take_items([index], items=("...", k)) for k in range(index.shape[-1])]
    return places, tuple(("array", k) for k in range(len(places)))


@public(method=True)
def gather_nd(x: Value, index: Value, name: str | None = None) -> Applied:
    """The parts whose places along the first axes are listed in the last axis of `index`."""
    places, items = _listed(index)
    return take_items([x, *places], items=items)


@public(method=True)
def scatter_nd_add(x: Value, index: Value, updates: Any, name: str | None = None) -> Applied:
    """The value, with updates added to the parts that `index` names as in `gather_nd`."""
    places, items = _listed(index)
    x, updates = to_common_type([x, updates])
    return put_items([x, updates, *places], items=items, accumulate=True)


@public()
def scatter_nd(index: Value, updates: Any, shape: Any, name: str | None = None) -> Applied:
    """Zeros, with updates added to the parts that `index` names as in `gather_nd`."""
    places, items = _listed(index)
    zeros = np.zeros(tuple(shape), canonical(updates.dtype))
    return put_items([zeros, updates, *places], items=items, accumulate=True)


# Along an axis, element by element


def _places_along(x: Any, index: Any, axis: int) -> Items:
    """The items of an index of places along an axis, once it is seen to fit."""
    _check_whole(index)
    if len(x.shape) != len(index.shape):
        raise ShapeError(
            f"the index must have as many axes as the value, found {list(index.shape)} for {list(x.shape)}"
        )
    return along(normal_axis(axis, len(x.shape)))


def _repeated(x: Any, other: Any, axis: int) -> Any:
    """A value repeated along the axes other than `axis` where it has size 1, and the other value has not."""
    axis = normal_axis(axis, len(x.shape))
    if all(a == axis or size == other.shape[a] for a, size in enumerate(x.shape)):
        return x
    one = take_items([other], items=(*[("slice", None, None, None)] * axis, ("slice", 0, 1, None)))
    return broadcast_tensors([x, one])[0]


@public(method=True)
def take_along_axis(x: Value, index: Value, axis: int, broadcast: bool = True) -> Applied:
    """The elements of each line along an axis that an array of places, one for each result, names.

    Along other axes, sizes of 1 are repeated. Without `broadcast`, the index may be smaller than the value there, and
    only lines with an index are read.
    """
    items = _places_along(x, index, axis)
    if broadcast:
        x, index = _repeated(x, index, axis), _repeated(index, x, axis)
    return take_items([x, index], items=items)


@public(method=True, in_place=True)
def put_along_axis(
    arr: Any,
    indices: Any,
    values: Any,
    axis: int,
    reduce: str = "assign",
    include_self: bool = True,
    broadcast: bool = True,
) -> Applied:
    """The value with the elements that places along an axis name replaced, or added to.

    Without `broadcast`, the index may be smaller than the value along other axes.
    """
    items = _places_along(arr, indices, axis)
    if reduce not in ("assign", "add") or not include_self:
        raise ShapeError(f"put_along_axis: reduce is 'assign' or 'add', not {reduce!r}")
    arr, values = to_common_type([arr, values])
    indices = _repeated(indices, arr, axis) if broadcast else indices
    return put_items([arr, values, indices], items=items, accumulate=reduce == "add")


@public(method=True)
def index_sample(x: Value, index: Value, name: str | None = None) -> Applied:
    """The elements of each row that the same row of `index` names."""
    return take_along_axis(x, index, axis=1)


# By truth values


@public(method=True)
def masked_select(x: Value, mask: Value, name: str | None = None) -> Applied:
    """The elements where a mask holds, in row order."""
    if tuple(x.shape) != tuple(mask.shape):
        x, mask = broadcast_tensors([x, mask])
    return take_items([x, mask], items=ROWS)


@public(method=True, in_place=True)
def masked_fill(x: Value, mask: Value, value: Operand, name: str | None = None) -> Applied:
    """The value with another one where a mask holds."""
    fill = cast_like(value, x) if hasattr(value, "dtype") else np.asarray(value, canonical(x.dtype))
    return where(mask, fill, x)


@operator(lambda x: Spec((UNKNOWN, len(x.shape)), "int64"), name="places_of_nonzero")
def places_of_nonzero(x: Array) -> Results:
    """A row for each element that is not zero: its place along each axis."""
    return np.argwhere(x)


@places_of_nonzero.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue) -> OnnxResult:
    if x.rank:
        return onnx.Transpose(onnx.NonZero(x), perm=[1, 0])
    return onnx.Slice(onnx.Transpose(onnx.NonZero(onnx.Reshape(x, [1])), perm=[1, 0]), [0], [0], [1])


@public(method=True)
def nonzero(x: Value, as_tuple: bool = False) -> Applied:
    """The places of the elements that are not zero: a row for each, or a list of places along each axis."""
    places = places_of_nonzero(x)
    return tuple(places[:, axis] for axis in range(len(x.shape))) if as_tuple else places


@public(method=True)
def where_(condition: Value, x: Value | None = None, y: Value | None = None, name: str | None = None) -> Applied:
    """`x` where the condition holds, `y` elsewhere; without them, the places where it holds."""
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    return where(condition, x, y)
