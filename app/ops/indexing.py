"""Indexing: `take_items` returns a part of a value, and `put_items` replaces a part or adds to it.

An index is stored as items, which are plain data: an integer, None for a new axis, "..." for an ellipsis, ("slice",
start, stop, step), or ("array", k) for the k-th index array or mask, which is a further input of the operator. The
single item ("along", axis) means that array 0 has indices along that axis, as in `take_along_axis`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from app.errors import DtypeError, OperatorError, ShapeError
from app.ops.broadcasting import sum_like
from app.ops.definition import operator
from app.ops.dtype import INTEGERS
from app.ops.logic import where
from app.ops.shaping import unsqueeze
from app.ops.size import AnySize, Shape, length_of_slice
from app.ops.spec import UNKNOWN, Spec, broadcast
from app.ops.values import Gradients, Results, Setting, Value

Item = int | str | tuple[Setting, ...] | None
Items = tuple[Item, ...]
Index: TypeAlias = Any
"""A Python index: integers, slices, None, ... and arrays or values of indices, or a tuple of these."""
Part: TypeAlias = Any
"""An element of an index: an integer, a slice, None, an ellipsis or an index array, of which shape inference has the
Spec, and ONNX rules have the Any."""
Array = np.ndarray

ROWS: Items = (("array", 0),)
"""The items that select slices along the first axis by the indices in array 0, or elements by the mask in it."""


def index_items(index: Index) -> tuple[list[Part], Items]:
    """The arrays in a Python index, and its items."""
    arrays: list[Part] = []
    items: list[Item] = []
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, (list, range, bool)) or (hasattr(item, "dtype") and not isinstance(item, np.integer)):
            items.append(("array", len(arrays)))
            if not hasattr(item, "dtype"):
                item = np.asarray(item, None if item or item is False else np.int64)
            arrays.append(item)
        elif isinstance(item, slice):
            items.append(("slice", item.start, item.stop, item.step))
        elif item is Ellipsis:
            items.append("...")
        elif item is None or hasattr(item, "__index__"):
            items.append(None if item is None else int(item))
        else:
            raise OperatorError(
                f"a value cannot be indexed by {item!r} ({type(item).__name__}); use integers, slices, None, ... and "
                "arrays of integers or booleans"
            )
    return arrays, tuple(items)


def along(axis: int) -> Items:
    """The items of an index by one array of indices along an axis, as in `take_along_axis`."""
    return (("along", axis),)


def on_axis(axis: int) -> Items:
    """The items that select the slices along a non-negative axis whose indices are in array 0."""
    return (*[("slice", None, None, None)] * axis, ("array", 0))


def _axis_along(items: Items) -> int | None:
    first = items[0] if items else None
    return int(first[1]) if isinstance(first, tuple) and first[0] == "along" else None


def _part(item: Item, arrays: Sequence[Part]) -> Part:
    """The element of a Python index for an item."""
    if isinstance(item, tuple):
        return arrays[item[1]] if item[0] == "array" else slice(*item[1:])
    return Ellipsis if item == "..." else item


def _numpy_index(items: Items, arrays: Sequence[Array]) -> tuple[Part, ...]:
    """The index for NumPy. Without arrays it has an ellipsis, so that NumPy returns a view even of one element."""
    axis = _axis_along(items)
    if axis is not None:
        grid = list(np.ogrid[tuple(slice(size) for size in arrays[0].shape)])
        grid[axis] = arrays[0]
        return tuple(grid)
    parts = tuple(_part(item, arrays) for item in items)
    return parts if arrays or Ellipsis in parts else (*parts, Ellipsis)


# Shapes


def _infer_take(*values: Spec, items: Items) -> Spec:
    x, arrays = values[0], values[1:]
    for array in arrays:
        if array.dtype != "bool" and array.dtype not in INTEGERS:
            raise DtypeError(f"an index array must contain integers or booleans, found {array.dtype}")
    if _axis_along(items) is not None:
        return Spec(arrays[0].shape, x.dtype)
    return Spec(_shape_of_part(x.shape, [_part(item, arrays) for item in items]), x.dtype)


def _axes_taken(part: Part) -> int:
    """The number of axes that an element of an index consumes."""
    if part is None:
        return 0
    return len(part.shape) if getattr(part, "dtype", None) == "bool" else 1


def _shape_of_part(shape: Shape, parts: list[Part]) -> Shape:
    """The shape of the part that an index selects.

    As in NumPy, the axes from arrays and integers are at the position of these, or first if these are not adjacent.
    """
    rest = len(shape) - sum(_axes_taken(part) for part in parts if part is not Ellipsis)
    if rest < 0:
        raise ShapeError(f"too many indices: the index has {len(shape) - rest} axes, the value {len(shape)}")
    if not any(part is Ellipsis for part in parts):
        parts = [*parts, Ellipsis]
    sizes: list[AnySize] = []
    picked: list[Shape] = []
    places, axis = [], 0
    for number, part in enumerate(parts):
        if part is None:
            sizes.append(1)
        elif part is Ellipsis:
            sizes.extend(shape[axis : axis + rest])
            axis += rest
            continue
        elif isinstance(part, slice):
            if part.step == 0:
                raise ShapeError("the step of a slice cannot be zero")
            sizes.append(UNKNOWN if shape[axis] == UNKNOWN else length_of_slice(shape[axis], part))
        else:
            picked.append(_picked(shape, axis, part))
            places.append((number, len(sizes)))
        axis += _axes_taken(part)
    if not places:
        return tuple(sizes)
    together = places[-1][0] - places[0][0] == len(places) - 1
    start = places[0][1] if together else 0
    return (*sizes[:start], *broadcast(*picked), *sizes[start:])


def _picked(shape: Shape, axis: int, part: Part) -> Shape:
    """The shape that an array or an integer contributes to the result."""
    if isinstance(part, Spec):
        return (UNKNOWN,) if part.dtype == "bool" else part.shape
    size = shape[axis]
    if isinstance(size, int) and size != UNKNOWN and not -size <= part < size:
        raise OperatorError(f"index {part} is out of bounds for axis {axis} with size {size}")
    return ()


# Taking a part


@operator(_infer_take, views=True, onnx=lambda onnx, values, items: _take_in_onnx(onnx, values[0], values[1:], items))
def take_items(*values: Array, items: Items) -> Array:
    """Return the part of the first value that items select; the other values are the index arrays.

    Without arrays it is a view.
    """
    part: Array = values[0][_numpy_index(items, values[1:])]
    return part


@take_items.gradient
def _(values_from_1: Sequence[Value], values_like: Sequence[Value], dout: Value, items: Items) -> Gradients:
    whole = put_items([values_like[0], dout, *values_from_1], items=items, accumulate=True, onto_zeros=True)
    return [whole, *[None] * len(values_from_1)]


# Replacing a part


def _infer_put(*values: Spec, items: Items, accumulate: bool = False, onto_zeros: bool = False) -> Spec:
    x, y, *arrays = values
    part = _infer_take(x, *arrays, items=items)
    broadcast(part.shape, y.shape)
    return Spec(x.shape, y.dtype) if onto_zeros else x


@operator(_infer_put)
def put_items(*values: Array, items: Items, accumulate: bool = False, onto_zeros: bool = False) -> Array:
    """A copy of the first value with the selected part replaced by the second or, with `accumulate`, added to.

    The other values are the index arrays. Of elements with a repeated index, the last remains. With `onto_zeros`, only
    the shape of the first value is used, and its elements are taken to be zeros.
    """
    x, y, *arrays = values
    out = np.zeros(x.shape, y.dtype) if onto_zeros else np.array(x, order="C")
    index = in_order(_numpy_index(items, arrays))
    if accumulate and arrays:
        np.add.at(out, index, y)
    elif accumulate and not onto_zeros:
        out[index] += y
    else:
        out[index] = np.asarray(y, order="C")
    return out


@operator(lambda *values, items: Spec(_infer_take(*values, items=items).shape, "bool"))
def last_writes(*values: Array, items: Items) -> Results:
    """For each element of the selected part, whether no later one has the same place in the first value.

    Where an index is repeated, `put_items` writes several elements to one place, of which the last remains.
    """
    x, *arrays = values
    index = in_order(_numpy_index(items, arrays))
    writer = np.zeros(x.shape, np.int64)
    order = np.arange(writer[index].size).reshape(writer[index].shape)
    writer[index] = order
    return np.asarray(writer[index] == order)


def in_order(index: Index) -> Index:
    """An index of NumPy whose arrays lie in memory so that elements are assigned in order."""
    if isinstance(index, tuple):
        return tuple(np.asarray(part, order="C") if isinstance(part, np.ndarray) else part for part in index)
    return np.asarray(index, order="C") if isinstance(index, np.ndarray) else index


@put_items.gradient
def _(
    values_from_2: Sequence[Value],
    values_like: Sequence[Value],
    dout: Value,
    items: Items,
    accumulate: bool,
    onto_zeros: bool,
) -> Gradients:
    part, arrays = values_like[1], values_from_2
    if onto_zeros:
        rest = None
    elif accumulate:
        rest = dout
    else:
        rest = put_items([dout, np.zeros((), dout.dtype), *arrays], items=items)
    put = take_items([dout, *arrays], items=items)
    if arrays and not accumulate:
        put = where(last_writes([values_like[0], *arrays], items=items), put, 0.0)
    extra = len(part.shape) - len(put.shape)  # axes of size 1, as of a value [1] for one element
    put = unsqueeze(put, axis=tuple(range(extra))) if extra > 0 else put
    if UNKNOWN in part.shape or tuple(put.shape) != tuple(part.shape):
        put = sum_like(put, part)
    return [rest, put if put.dtype == part.dtype else put.astype(part.dtype), *[None] * len(arrays)]


# In ONNX


def _take_in_onnx(onnx: Any, x: Any, arrays: Sequence[Any], items: Items) -> Any:
    axis = _axis_along(items)
    if axis is not None:
        return onnx.GatherElements(x, arrays[0], axis=axis)
    parts = _one_each([_part(item, arrays) for item in items], x.rank)
    if not arrays:
        return _sliced_in_onnx(onnx, x, parts)
    places = [place for place, part in enumerate(parts) if not (isinstance(part, slice) and part == slice(None))]
    if len(places) > 1 or arrays[0].dtype == "bool":
        raise OperatorError("ONNX takes one array of integers along one axis, as opsmith.gather does")
    return onnx.Gather(x, arrays[0], axis=places[0])


def _one_each(parts: list[Part], rank: int) -> list[Part]:
    """The elements of an index, with the ellipsis and missing axes replaced by full slices."""
    rest = [slice(None)] * (rank - sum(_axes_taken(i) for i in parts if i is not Ellipsis))
    places = [place for place, part in enumerate(parts) if part is Ellipsis]
    cut = places[0] if places else len(parts)
    return [*parts[:cut], *rest, *parts[cut + 1 :]]


def _sliced_in_onnx(onnx: Any, x: Any, parts: list[Part]) -> Any:
    """Index by integers, slices and new axes."""
    axes = [part for part in parts if part is not None]
    single = [axis for axis, part in enumerate(axes) if isinstance(part, int)]
    cuts = [_slice_in_onnx(axis, part) for axis, part in enumerate(axes) if part != slice(None)]
    sliced = onnx.Slice(x, *map(list, zip(*cuts, strict=True))) if cuts else x
    sliced = onnx.Squeeze(sliced, single) if single else sliced
    slices = [part for part in parts if not isinstance(part, int)]
    new = [place for place, part in enumerate(slices) if part is None]
    return onnx.Unsqueeze(sliced, new) if new else sliced


def _slice_in_onnx(axis: int, part: Part) -> tuple[int, int, int, int]:
    """The start, the end, the axis and the step of the slice that selects an integer or a slice."""
    cut = slice(part, part + 1 or None) if isinstance(part, int) else part
    step = 1 if cut.step is None else cut.step
    if step < 0 and cut.start is not None and cut.start < -1:  # NumPy and ONNX differ if the axis is shorter
        raise OperatorError(f"ONNX has no slice backwards from {cut.start}; reverse the value first, x[::-1]")
    limits = np.iinfo(np.int64)
    first, last = (0, limits.max) if step > 0 else (limits.max, limits.min)
    return first if cut.start is None else cut.start, last if cut.stop is None else cut.stop, axis, step
