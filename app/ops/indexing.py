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
from app.ops.size import AnySize, Shape, length_of_slice
from app.ops.spec import UNKNOWN, Spec, broadcast
from app.ops.values import Gradients, OnnxNodes, OnnxResult, OnnxValue, Setting, Value

Item = int | str | tuple[Setting, ...] | None
Items = tuple[Item, ...]
Index: TypeAlias = Any
"""A Python index: integers, slices, None, ... and arrays or values of indices, or a tuple of these."""
Part: TypeAlias = Any
"""An element of an index: an integer, a slice, None, an ellipsis or an index array, of which shape inference has the
Spec, and ONNX rules have the OnnxValue."""
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
            arrays.append(item if hasattr(item, "dtype") else np.asarray(item, None if item else np.int64))
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
    found = tuple(_part(item, arrays) for item in items)
    return found if arrays or Ellipsis in found else (*found, Ellipsis)


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
    found: Array = values[0][_numpy_index(items, values[1:])]
    return found


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

    The other values are the index arrays. With `onto_zeros`, only the shape of the first value is used, and its
    elements are taken to be zeros.
    """
    x, y, *arrays = values
    out = np.zeros(x.shape, y.dtype) if onto_zeros else x.copy()
    index = _numpy_index(items, arrays)
    if accumulate and arrays:
        np.add.at(out, index, y)
    elif accumulate and not onto_zeros:
        out[index] += y
    else:
        out[index] = y
    return out


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
    if UNKNOWN in part.shape or tuple(put.shape) != tuple(part.shape):
        put = sum_like(put, part)
    return [rest, put if put.dtype == part.dtype else put.astype(part.dtype), *[None] * len(arrays)]


# In ONNX


@put_items.in_onnx
def _(onnx: OnnxNodes, values: Sequence[OnnxValue], items: Items, accumulate: bool, onto_zeros: bool) -> OnnxResult:
    x, y, *arrays = values

    def pick(value: OnnxValue) -> OnnxValue:
        return _take_in_onnx(onnx, value, arrays, items)

    put = onnx.placed(y, x, pick, add=accumulate and bool(arrays))
    if onto_zeros:
        return put
    return x + put if accumulate else onnx.Where(onnx.placed(onnx.constant(True), x, pick), put, x)


def _take_in_onnx(onnx: OnnxNodes, x: OnnxValue, arrays: Sequence[OnnxValue], items: Items) -> OnnxValue:
    axis = _axis_along(items)
    if axis is not None:
        return onnx.GatherElements(x, arrays[0], axis=axis)
    parts = _one_each([_part(item, arrays) for item in items], x.rank)
    return _picked_in_onnx(onnx, x, parts) if arrays else _sliced_in_onnx(onnx, x, parts)


def _one_each(parts: list[Part], rank: int) -> list[Part]:
    """The elements of an index, with the ellipsis and missing axes replaced by full slices."""
    rest = [slice(None)] * (rank - sum(_axes_taken(i) for i in parts if i is not Ellipsis))
    places = [place for place, part in enumerate(parts) if part is Ellipsis]
    cut = places[0] if places else len(parts)
    return [*parts[:cut], *rest, *parts[cut + 1 :]]


def _sliced_in_onnx(onnx: OnnxNodes, x: OnnxValue, parts: list[Part]) -> OnnxValue:
    """Index by integers, slices and new axes."""
    axes = [part for part in parts if part is not None]
    single = [axis for axis, part in enumerate(axes) if isinstance(part, int)]
    found = _cut_in_onnx(onnx, x, [slice(i, i + 1 or None) if isinstance(i, int) else i for i in axes])
    found = onnx.Squeeze(found, single) if single else found
    kept = [part for part in parts if not isinstance(part, int)]
    new = [place for place, part in enumerate(kept) if part is None]
    return onnx.Unsqueeze(found, new) if new else found


def _cut_in_onnx(onnx: OnnxNodes, x: OnnxValue, slices: list[slice]) -> OnnxValue:
    """Index by one slice for each axis."""
    shortened = [_until_start(cut) for cut in slices]
    return _part_in_onnx(onnx, _part_in_onnx(onnx, x, [before for before, _ in shortened]), [c for _, c in shortened])


def _until_start(cut: slice) -> tuple[slice, slice]:
    """A slice as two consecutive slices, neither of which goes backwards from a negative start.

    If the axis is shorter than such a start, NumPy selects nothing, but ONNX starts at the first element.
    """
    start, stop = cut.start, cut.stop
    if cut.step is None or cut.step > 0 or start is None or start >= -1:
        return slice(None), cut
    if stop is not None and start < stop < 0:
        return slice(0, 0), slice(None)
    return slice(start + 1), slice(None, stop - (start + 1) if stop is not None and stop < 0 else stop, cut.step)


def _part_in_onnx(onnx: OnnxNodes, x: OnnxValue, slices: list[slice]) -> OnnxValue:
    limits = np.iinfo(np.int64)
    cuts = []
    for axis, cut in enumerate(slices):
        step = 1 if cut.step is None else cut.step
        start, stop = (0, limits.max) if step > 0 else (limits.max, limits.min)
        if cut != slice(None):
            cuts.append((start if cut.start is None else cut.start, stop if cut.stop is None else cut.stop, axis, step))
    return onnx.Slice(x, *map(list, zip(*cuts, strict=True))) if cuts else x


def _picked_in_onnx(onnx: OnnxNodes, x: OnnxValue, parts: list[Part]) -> OnnxValue:
    """Index by arrays: move their axes to the front, gather, and move the result axes to where NumPy has them."""
    every = _places_in_onnx(onnx, parts)
    axes = [item for item in every if item is not None]
    picked = [axis for axis, item in enumerate(axes) if not isinstance(item, slice)]
    kept = [axis for axis, item in enumerate(axes) if isinstance(item, slice)]
    part = _cut_in_onnx(onnx, x, [item if isinstance(item, slice) else slice(None) for item in axes])
    places, width = _together_in_onnx(onnx, [axes[axis] for axis in picked])
    found = onnx.GatherND(onnx.Transpose(part, perm=[*picked, *kept]), places)
    numbers = [place for place, item in enumerate(every) if not (item is None or isinstance(item, slice))]
    first = numbers[0] if numbers[-1] - numbers[0] == len(numbers) - 1 else 0
    before = every[:first]
    start = sum(isinstance(item, slice) for item in before)
    rest = list(range(width, width + len(kept)))
    found = onnx.Transpose(found, perm=[*rest[:start], *range(width), *rest[start:]])
    behind = [item for item in every[first:] if item is None or isinstance(item, slice)]
    layout = [*before, *[slice(None)] * width, *behind]
    new = [place for place, item in enumerate(layout) if item is None]
    return onnx.Unsqueeze(found, new) if new else found


def _places_in_onnx(onnx: OnnxNodes, items: list[Part]) -> list[Part]:
    """The items with integers as arrays of indices, and masks as one array of indices for each of their axes."""
    found: list[Part] = []
    for item in items:
        if isinstance(item, int):
            found.append(onnx.constant(item, "int64"))
        elif item is None or isinstance(item, slice):
            found.append(item)
        elif item.dtype != "bool":
            found.append(onnx.Cast(item, to="int64").with_shape(item.shape))
        else:
            rows = onnx.NonZero(item)
            found += [onnx.Gather(rows, np.int64(axis)).with_shape([UNKNOWN]) for axis in range(item.rank)]
    return found


def _together_in_onnx(onnx: OnnxNodes, places: list[OnnxValue]) -> tuple[OnnxValue, int]:
    """Arrays of indices, broadcast and stacked along a new last axis, and their number of axes before that."""
    width = max(array.rank for array in places)
    if len(places) > 1:
        total = places[0]
        for array in places[1:]:
            total = total + array
        places = [onnx.Expand(array, onnx.Shape(total)) for array in places]
    return onnx.Concat(*(onnx.Unsqueeze(array, [-1]) for array in places), axis=-1), width
