"""Parts of a value: `take_items` takes one and `put_items` puts numbers into one, or adds to it.

A part is named by items, the plain data of a Python index: a whole number, None for a new axis, "..." for all other
axes, ("slice", start, stop, step), or ("array", k) for array number k of places or of truth values, which is one more
input of the operator. ("along", axis), alone, means that array 0 holds places along that axis, one for each result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import DtypeError, OperatorError, ShapeError
from app.ops.broadcasting import sum_like
from app.ops.definition import operator
from app.ops.dtype import INTEGERS
from app.ops.size import AnySize, Shape, length_of_slice
from app.ops.spec import UNKNOWN, Spec, broadcast
from app.ops.values import Attributes, Gradients, OnnxNodes, OnnxResult, OnnxValue, Value

Item = int | str | tuple[Any, ...] | None
Items = tuple[Item, ...]
Array = np.ndarray

ROWS: Items = (("array", 0),)
"""Names the slices along the first axis that array 0 lists, or the elements where it is true."""


def index_items(index: Any) -> tuple[list[Any], Items]:
    """The arrays of a Python index, and its items."""
    arrays: list[Any] = []
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
                f"a value cannot be indexed by {item!r} ({type(item).__name__}); an index is made of whole numbers, "
                "slices, None, ... and arrays of whole numbers or truth values"
            )
    return arrays, tuple(items)


def along(axis: int) -> Items:
    """The items of an index of one array, of places along an axis."""
    return (("along", axis),)


def on_axis(axis: int) -> Items:
    """The items of the slices along an axis, counted from the front, that array 0 lists."""
    return (*[("slice", None, None, None)] * axis, ("array", 0))


def _axis_along(items: Items) -> int | None:
    first = items[0] if items else None
    return int(first[1]) if isinstance(first, tuple) and first[0] == "along" else None


def _part(item: Item, arrays: Sequence[Any]) -> Any:
    """What stands in an index for an item."""
    if isinstance(item, tuple):
        return arrays[item[1]] if item[0] == "array" else slice(*item[1:])
    return Ellipsis if item == "..." else item


def _numpy_index(items: Items, arrays: Sequence[Array]) -> tuple[Any, ...]:
    """The index that NumPy takes. Without arrays it has an ellipsis, so that NumPy gives a view even of one element."""
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
            raise DtypeError(f"an index must be of whole numbers or truth values, found {array.dtype}")
    if _axis_along(items) is not None:
        return Spec(arrays[0].shape, x.dtype)
    return Spec(_shape_of_part(x.shape, [_part(item, arrays) for item in items]), x.dtype)


def _axes_taken(part: Any) -> int:
    """How many axes of the value a part of an index stands for."""
    if part is None:
        return 0
    return len(part.shape) if getattr(part, "dtype", None) == "bool" else 1


def _shape_of_part(shape: Shape, parts: list[Any]) -> Shape:
    """The shape of the part that an index names.

    The axes of what arrays and numbers pick stand where these stand, or first where they do not stand together.
    """
    rest = len(shape) - sum(_axes_taken(part) for part in parts if part is not Ellipsis)
    if rest < 0:
        raise ShapeError(f"the index names {len(shape) - rest} axes of a value with {len(shape)}")
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


def _picked(shape: Shape, axis: int, part: Any) -> Shape:
    """The shape of what an array or a number picks along an axis."""
    if isinstance(part, Spec):
        return (UNKNOWN,) if part.dtype == "bool" else part.shape
    size = shape[axis]
    if isinstance(size, int) and size != UNKNOWN and not -size <= part < size:
        raise OperatorError(f"index {part} is out of bounds for axis {axis} with size {size}")
    return ()


# Taking a part


@operator(_infer_take, views=True)
def take_items(*values: Array, items: Items) -> Array:
    """The part of the first value that items name; the other values are the arrays among these.

    Without arrays it shares the memory of the value.
    """
    found: Array = values[0][_numpy_index(items, values[1:])]
    return found


@take_items.gradient
def _(values_from_1: Sequence[Value], values_like: Sequence[Value], dout: Value, items: Items) -> Gradients:
    whole = put_items([values_like[0], dout, *values_from_1], items=items, accumulate=True, onto_zeros=True)
    return [whole, *[None] * len(values_from_1)]


# Putting numbers into a part


def _infer_put(*values: Spec, items: Items, accumulate: bool = False, onto_zeros: bool = False) -> Spec:
    x, y, *arrays = values
    part = _infer_take(x, *arrays, items=items)
    broadcast(part.shape, y.shape)
    return Spec(x.shape, y.dtype) if onto_zeros else x


@operator(_infer_put)
def put_items(*values: Array, items: Items, accumulate: bool = False, onto_zeros: bool = False) -> Array:
    """A copy of the first value with the second one in the part that items name, or with `accumulate` added to it.

    The other values are the arrays among the items. With `onto_zeros`, the first value lends its shape only, and zeros
    stand for its elements.
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


@take_items.in_onnx
def _(onnx: OnnxNodes, values: Sequence[OnnxValue], items: Items) -> OnnxResult:
    return _take_in_onnx(onnx, values[0], values[1:], items)


@put_items.in_onnx
def _(onnx: OnnxNodes, values: Sequence[OnnxValue], items: Items, accumulate: bool, onto_zeros: bool) -> OnnxResult:
    x, y, *arrays = values

    def pick(value: Any) -> Any:
        return _take_in_onnx(onnx, value, arrays, items)

    put = onnx.placed(y, x, pick, add=accumulate and bool(arrays))
    if onto_zeros:
        return put
    return x + put if accumulate else onnx.Where(onnx.placed(onnx.constant(True), x, pick), put, x)


def _take_in_onnx(onnx: OnnxNodes, x: Any, arrays: Sequence[Any], items: Items) -> Any:
    axis = _axis_along(items)
    if axis is not None:
        return onnx.GatherElements(x, arrays[0], axis=axis)
    parts = _one_each([_part(item, arrays) for item in items], x.rank)
    return _picked_in_onnx(onnx, x, parts) if arrays else _sliced_in_onnx(onnx, x, parts)


def _one_each(parts: list[Any], rank: int) -> list[Any]:
    """The parts of an index, with a slice for each axis that an ellipsis, or nothing, stands for."""
    rest = [slice(None)] * (rank - sum(_axes_taken(i) for i in parts if i is not Ellipsis))
    places = [place for place, part in enumerate(parts) if part is Ellipsis]
    cut = places[0] if places else len(parts)
    return [*parts[:cut], *rest, *parts[cut + 1 :]]


def _sliced_in_onnx(onnx: OnnxNodes, x: Any, parts: list[Any]) -> Any:
    """The part that numbers, slices and new axes name."""
    axes = [part for part in parts if part is not None]
    single = [axis for axis, part in enumerate(axes) if isinstance(part, int)]
    found = _cut_in_onnx(onnx, x, [slice(i, i + 1 or None) if isinstance(i, int) else i for i in axes])
    found = onnx.Squeeze(found, single) if single else found
    kept = [part for part in parts if not isinstance(part, int)]
    new = [place for place, part in enumerate(kept) if part is None]
    return onnx.Unsqueeze(found, new) if new else found


def _cut_in_onnx(onnx: OnnxNodes, x: Any, slices: list[slice]) -> Any:
    """The part between the ends of a slice for each axis."""
    shortened = [_until_start(cut) for cut in slices]
    return _part_in_onnx(onnx, _part_in_onnx(onnx, x, [before for before, _ in shortened]), [c for _, c in shortened])


def _until_start(cut: slice) -> tuple[slice, slice]:
    """A slice as two, one after the other, so that none goes backwards from a place that is counted from the end.

    Where there are fewer elements than that, NumPy gives none, and ONNX begins at the first.
    """
    start, stop = cut.start, cut.stop
    if cut.step is None or cut.step > 0 or start is None or start >= -1:
        return slice(None), cut
    if stop is not None and start < stop < 0:
        return slice(0, 0), slice(None)
    return slice(start + 1), slice(None, stop - (start + 1) if stop is not None and stop < 0 else stop, cut.step)


def _part_in_onnx(onnx: OnnxNodes, x: Any, slices: list[slice]) -> Any:
    limits = np.iinfo(np.int64)
    cuts = []
    for axis, cut in enumerate(slices):
        step = 1 if cut.step is None else cut.step
        start, stop = (0, limits.max) if step > 0 else (limits.max, limits.min)
        if cut != slice(None):
            cuts.append((start if cut.start is None else cut.start, stop if cut.stop is None else cut.stop, axis, step))
    return onnx.Slice(x, *map(list, zip(*cuts, strict=True))) if cuts else x


def _picked_in_onnx(onnx: OnnxNodes, x: Any, parts: list[Any]) -> Any:
    """The part that arrays pick: their axes go to the front, and what is picked is put where NumPy has it."""
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


def _places_in_onnx(onnx: OnnxNodes, items: list[Any]) -> list[Any]:
    """The items with an array of places for each number, and one for each axis of a mask."""
    found: list[Any] = []
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


def _together_in_onnx(onnx: OnnxNodes, places: list[Any]) -> tuple[Any, int]:
    """Arrays of places, broadcast together, along a new last axis; and how many axes they have without it."""
    width = max(array.rank for array in places)
    if len(places) > 1:
        total = places[0]
        for array in places[1:]:
            total = total + array
        places = [onnx.Expand(array, onnx.Shape(total)) for array in places]
    return onnx.Concat(*(onnx.Unsqueeze(array, [-1]) for array in places), axis=-1), width


# Programs in files of before

Upgrade = Callable[[Sequence[Any], Attributes], tuple[str, list[Any], Attributes]]

UPGRADES: dict[str, Upgrade] = {
    "getitem": lambda inputs, settings: ("take_items", [*inputs], {"items": settings["index"]}),
    "take_along_axis": lambda inputs, settings: ("take_items", [*inputs], {"items": along(settings["axis"])}),
    "replace_along_axis": lambda inputs, settings: (
        "put_items",
        [inputs[0], inputs[2], inputs[1]],
        {"items": along(settings["axis"])},
    ),
}
"""What an operator that left is written with today: for Programs that an earlier release has written to a file."""
