"""Slices and elements that an array of places names: taking them, replacing them, adding to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import DtypeError, ShapeError
from app.ops.broadcasting import broadcast_tensors
from app.ops.creation import zeros_like
from app.ops.definition import operator
from app.ops.dtype import INTEGERS, canonical
from app.ops.elementwise import to_common_type
from app.ops.form import Filling
from app.ops.indexing import take_items
from app.ops.logic import equal, where
from app.ops.public import public
from app.ops.reduction import sum_
from app.ops.shaping import cast, cast_like, flatten, reshape
from app.ops.spec import UNKNOWN, Spec, normal_axis


def _infer_gather(x: Spec, index: Spec, *, axis: int | None = 0) -> Spec:
    if index.dtype not in INTEGERS:
        raise DtypeError(f"an index must be of whole numbers, found {index.dtype}")
    along = normal_axis(axis or 0, len(x.shape))
    return Spec((*x.shape[:along], *index.shape, *x.shape[along + 1 :]), x.dtype)


def _fill_gathered(x: Any, index: Any, out: Any, axis: Any) -> bool:
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
def gather(x: Any, index: Any, *, axis: int | None = 0) -> Any:
    """The rows, or slices along another axis, that an array of whole numbers names."""
    return np.take(x, index, axis or 0)


@gather.gradient_of("x")
def _(x_like: Any, index: Any, dout: Any, axis: int | None) -> Any:
    return add_at(dout, index, x_like, axis=axis or 0)


@gather.in_onnx
def _gather_in_onnx(onnx: Any, x: Any, index: Any, axis: int | None) -> Any:
    return onnx.Gather(x, index, axis=axis or 0)


@operator(lambda y, index, like, *, axis=0: Spec(like.shape, y.dtype))
def add_at(y: Any, index: Any, like: Any, *, axis: int = 0) -> Any:
    """Zeros in the shape of `like`, to whose slices named by `index` those of `y` are added."""
    out = np.zeros(like.shape, y.dtype)
    np.add.at(out, (*[slice(None)] * normal_axis(axis, out.ndim), index), y)
    return out


@add_at.gradient_of("y")
def _(index: Any, dout: Any, axis: int) -> Any:
    return gather(dout, index, axis=axis)


@add_at.in_onnx
def _(onnx: Any, y: Any, index: Any, like: Any, axis: int) -> Any:
    return onnx.placed(y, like, lambda places: _gather_in_onnx(onnx, places, index, axis), add=True)


def _places_and_values(values: list[Any]) -> list[Any]:
    x, updates = to_common_type([values[0], values[2]])
    return [x, values[1], updates]


def _infer_scatter(x: Spec, index: Spec, updates: Spec, *, overwrite: bool = True) -> Spec:
    if index.dtype not in INTEGERS:
        raise DtypeError(f"an index must be of whole numbers, found {index.dtype}")
    return x


@public(method=True, in_place=True)
@operator(_infer_scatter, prepare=_places_and_values, checked=True)
def scatter(x: Any, index: Any, updates: Any, *, overwrite: bool = True) -> Any:
    """The value with the rows that `index` names replaced by `updates`, or by the sum of those for a row."""
    out, index = x.copy(), index.reshape(-1)
    if overwrite:
        out[index] = updates
    else:
        out[index] = 0
        np.add.at(out, index, updates)
    return out


@scatter.gradient_of("x")
def _(index: Any, updates_like: Any, dout: Any) -> Any:
    return scatter(dout, index, zeros_like(updates_like))


@scatter.gradient_of("updates")
def _(index: Any, dout: Any) -> Any:
    return gather(dout, reshape(index, [-1]))


@scatter.in_onnx
def _(onnx: Any, x: Any, index: Any, updates: Any, overwrite: bool) -> Any:
    rows = onnx.Cast(onnx.Reshape(index, [-1, 1]), to="int64")
    if overwrite:
        return onnx.ScatterND(x, rows, updates)
    emptied = onnx.ScatterND(x, rows, onnx.filled(onnx.Shape(updates), 0, x.dtype))
    return onnx.ScatterND(emptied, rows, updates, reduction="add")


# Along an axis, element by element


def _infer_along(x: Spec, index: Spec, *, axis: int) -> Spec:
    _check_along(x, index, axis)
    return Spec(index.shape, x.dtype)


def _check_along(x: Spec, index: Spec, axis: int) -> None:
    if index.dtype not in INTEGERS:
        raise DtypeError(f"an index must be of whole numbers, found {index.dtype}")
    if len(x.shape) != len(index.shape):
        raise ShapeError(
            f"the index must have as many axes as the value, found {list(index.shape)} for {list(x.shape)}"
        )
    normal_axis(axis, len(x.shape))


@public(method=True)
@operator(_infer_along, checked=True)
def take_along_axis(x: Any, index: Any, *, axis: int) -> Any:
    """The elements of each line along an axis that an array of places, one for each result, names."""
    return np.take_along_axis(x, index, axis)


@take_along_axis.gradient_of("x")
def _(x_like: Any, index: Any, dout: Any, axis: int) -> Any:
    return add_along_axis(dout, index, x_like, axis=axis)


@take_along_axis.in_onnx
def _(onnx: Any, x: Any, index: Any, axis: int) -> Any:
    return onnx.GatherElements(x, index, axis=axis)


def _grid(index: Any, axis: int) -> tuple[Any, ...]:
    """The places of an index along one axis as an index of all axes."""
    places = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    places[axis] = index
    return tuple(places)


@operator(lambda y, index, like, *, axis: Spec(like.shape, y.dtype))
def add_along_axis(y: Any, index: Any, like: Any, *, axis: int) -> Any:
    """Zeros in the shape of `like`, to whose elements named by places along an axis those of `y` are added."""
    out = np.zeros(like.shape, y.dtype)
    np.add.at(out, _grid(index, axis), y)
    return out


@add_along_axis.gradient_of("y")
def _(index: Any, dout: Any, axis: int) -> Any:
    return take_along_axis(dout, index, axis=axis)


@add_along_axis.in_onnx
def _(onnx: Any, y: Any, index: Any, like: Any, axis: int) -> Any:
    zeros = onnx.filled(onnx.Shape(like), 0, y.dtype)
    return onnx.ScatterElements(zeros, index, y, axis=axis, reduction="add")


def _infer_put(x: Spec, index: Spec, values: Spec, *, axis: int) -> Spec:
    _check_along(x, index, axis)
    return x


@operator(_infer_put, prepare=_places_and_values, checked=True)
def replace_along_axis(x: Any, index: Any, values: Any, *, axis: int) -> Any:
    """The value with the elements that places along an axis name replaced."""
    out = x.copy()
    out[_grid(index, axis)] = values
    return out


@replace_along_axis.gradient_of("x")
def _(index: Any, values_like: Any, dout: Any, axis: int) -> Any:
    return replace_along_axis(dout, index, zeros_like(values_like), axis=axis)


@replace_along_axis.gradient_of("values")
def _(index: Any, dout: Any, axis: int) -> Any:
    return take_along_axis(dout, index, axis=axis)


@replace_along_axis.in_onnx
def _(onnx: Any, x: Any, index: Any, values: Any, axis: int) -> Any:
    return onnx.ScatterElements(x, index, values, axis=axis)


@public(method=True, in_place=True)
def put_along_axis(
    arr: Any,
    indices: Any,
    values: Any,
    axis: int,
    reduce: str = "assign",
    include_self: bool = True,
    broadcast: bool = True,
) -> Any:
    """The value with the elements that places along an axis name replaced, or added to."""
    spread = zeros_like(indices, dtype=canonical(arr.dtype)) + values
    if reduce == "assign":
        return replace_along_axis(arr, indices, spread, axis=axis)
    if reduce != "add" or not include_self:
        raise ShapeError(f"put_along_axis: reduce is 'assign' or 'add', not {reduce!r}")
    return arr + add_along_axis(spread, indices, arr, axis=axis)


@public(method=True)
def index_select(x: Any, index: Any, axis: int = 0, name: Any = None) -> Any:
    """The slices along an axis that an array of whole numbers names."""
    return gather(x, index, axis=axis)


@public(method=True)
def index_sample(x: Any, index: Any, name: Any = None) -> Any:
    """The elements of each row that the same row of `index` names."""
    return take_along_axis(x, index, axis=1)


@public(method=True, in_place=True)
def index_add(x: Any, index: Any, axis: int, value: Any, name: Any = None) -> Any:
    """The value with slices added to those that an array of whole numbers names."""
    return x + add_at(value, index, x, axis=axis)


@public(method=True, in_place=True)
def index_fill(x: Any, index: Any, axis: int, value: Any, name: Any = None) -> Any:
    """The value with another one at the places of an axis that `index` names."""
    place = np.arange(x.shape[axis]).reshape(
        [-1 if i == normal_axis(axis, len(x.shape)) else 1 for i in range(len(x.shape))]
    )
    chosen = equal(place[..., None], index)
    return masked_fill(x, sum_(cast(chosen, dtype="int64"), axis=-1) > 0, value)


@public(method=True)
def take(x: Any, index: Any, mode: str = "raise", name: Any = None) -> Any:
    """The elements that an array of places in row order names."""
    return gather(flatten(x), index)


@public(method=True)
def repeat_interleave(x: Any, repeats: Any, axis: int | None = None, name: Any = None) -> Any:
    """Each slice along an axis, or each element, repeated."""
    along = 0 if axis is None else axis
    flat = flatten(x) if axis is None else x
    counts = np.asarray(repeats)
    return gather(flat, np.repeat(np.arange(flat.shape[along]), counts), axis=along)


# By truth values


@public(method=True)
def masked_select(x: Any, mask: Any, name: Any = None) -> Any:
    """The elements where a mask holds, in row order."""
    if tuple(x.shape) != tuple(mask.shape):
        x, mask = broadcast_tensors([x, mask])
    return take_items([x, mask], items=(("array", 0),))


@public(method=True, in_place=True)
def masked_fill(x: Any, mask: Any, value: Any, name: Any = None) -> Any:
    """The value with another one where a mask holds."""
    value = cast_like(value, x) if hasattr(value, "dtype") else np.asarray(value, canonical(x.dtype))
    return where(mask, value, x)


@operator(lambda x: Spec((UNKNOWN, len(x.shape)), "int64"), name="places_of_nonzero")
def places_of_nonzero(x: Any) -> Any:
    """A row for each element that is not zero: its place along each axis."""
    return np.argwhere(x)


@places_of_nonzero.in_onnx
def _(onnx: Any, x: Any) -> Any:
    if x.rank:
        return onnx.Transpose(onnx.NonZero(x), perm=[1, 0])
    return onnx.Slice(onnx.Transpose(onnx.NonZero(onnx.Reshape(x, [1])), perm=[1, 0]), [0], [0], [1])


@public(method=True)
def nonzero(x: Any, as_tuple: bool = False) -> Any:
    """The places of the elements that are not zero: a row for each, or a list of places along each axis."""
    places = places_of_nonzero(x)
    return tuple(places[:, axis] for axis in range(len(x.shape))) if as_tuple else places


@public(method=True)
def where_(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """`x` where the condition holds, `y` elsewhere; without them, the places where it holds."""
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    return where(condition, x, y)
