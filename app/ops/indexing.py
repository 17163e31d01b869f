"""Parts of a value as Python's brackets name them: by numbers, slices, and arrays of numbers or of truth values."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import DtypeError, OperatorError, ShapeError
from app.ops.definition import REGISTRY, operator
from app.ops.dtype import INTEGERS, canonical
from app.ops.public import public
from app.ops.size import AnySize, Shape, length_of_slice
from app.ops.spec import UNKNOWN, Spec, broadcast, normal_axis


def _index(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index that the plain attribute of `getitem` stands for: ("slice", a, b, c), a number, None or "...".

    It has an ellipsis, with which NumPy gives even a single element as an array that shares the value's memory.
    """
    found = tuple(slice(*i[1:]) if isinstance(i, tuple) else Ellipsis if isinstance(i, str) else i for i in items)
    return found if Ellipsis in found else (*found, Ellipsis)


def plain_index(index: Any) -> tuple[Any, ...]:
    """A Python index as the plain data that a `getitem` operator carries."""
    items = index if isinstance(index, tuple) else (index,)
    return tuple(
        ("slice", i.start, i.stop, i.step) if isinstance(i, slice) else "..." if i is Ellipsis else i for i in items
    )


def _infer_getitem(x: Spec, *, index: tuple[Any, ...]) -> Spec:
    return Spec(_shape_of_items(x.shape, _index(index)), x.dtype)


@operator(_infer_getitem, views=True)
def getitem(x: Any, *, index: tuple[Any, ...]) -> Any:
    """A part of the value, by numbers and slices."""
    return x[_index(index)]


@getitem.gradient
def _(x_like: Any, dout: Any, index: tuple[Any, ...]) -> Any:
    return place(dout, x_like, index=index)


@getitem.in_onnx
def _getitem_in_onnx(onnx: Any, x: Any, index: tuple[Any, ...]) -> Any:
    items = _one_each(_index(index), x.rank)
    axes = [i for i in items if i is not None]
    single = [axis for axis, item in enumerate(axes) if isinstance(item, int)]
    part = _cut_in_onnx(onnx, x, [slice(i, i + 1 or None) if isinstance(i, int) else i for i in axes])
    part = onnx.Squeeze(part, single) if single else part
    kept = [i for i in items if not isinstance(i, int)]
    new = [place for place, item in enumerate(kept) if item is None]
    return onnx.Unsqueeze(part, new) if new else part


def _one_each(items: tuple[Any, ...], rank: int) -> list[Any]:
    """The items of an index, with a slice for each axis that an ellipsis, or nothing, stands for."""
    rest = [slice(None)] * (rank - sum(_axes_taken(i) for i in items if i is not Ellipsis))
    places = [place for place, item in enumerate(items) if item is Ellipsis]
    cut = places[0] if places else len(items)
    return [*items[:cut], *rest, *items[cut + 1 :]]


def _cut_in_onnx(onnx: Any, x: Any, slices: list[slice]) -> Any:
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


def _part_in_onnx(onnx: Any, x: Any, slices: list[slice]) -> Any:
    limits = np.iinfo(np.int64)
    cuts = []
    for axis, cut in enumerate(slices):
        step = 1 if cut.step is None else cut.step
        start, stop = (0, limits.max) if step > 0 else (limits.max, limits.min)
        if cut != slice(None):
            cuts.append((start if cut.start is None else cut.start, stop if cut.stop is None else cut.stop, axis, step))
    return onnx.Slice(x, *map(list, zip(*cuts, strict=True))) if cuts else x


@operator(lambda y, like, *, index: Spec(like.shape, y.dtype))
def place(y: Any, like: Any, *, index: tuple[Any, ...]) -> Any:
    """Zeros in the shape of `like`, with `y` in the part that the index names."""
    out = np.zeros(like.shape, y.dtype)
    out[_index(index)] = y
    return out


@place.gradient_of("y")
def _(dout: Any, index: tuple[Any, ...]) -> Any:
    return getitem(dout, index=index)


@place.in_onnx
def _(onnx: Any, y: Any, like: Any, index: tuple[Any, ...]) -> Any:
    return onnx.placed(y, like, lambda places: _getitem_in_onnx(onnx, places, index))


# With arrays among the items of the index: ("array", k) stands for array number k


def _with_arrays(items: tuple[Any, ...], arrays: Any) -> tuple[Any, ...]:
    return tuple(arrays[i[1]] if isinstance(i, tuple) and i[0] == "array" else _index((i,))[0] for i in items)


def _infer_take_items(*values: Spec, items: tuple[Any, ...]) -> Spec:
    x, arrays = values[0], values[1:]
    for array in arrays:
        if array.dtype != "bool" and array.dtype not in INTEGERS:
            raise DtypeError(f"an index must be of whole numbers or truth values, found {array.dtype}")
    return Spec(_shape_of_items(x.shape, _with_arrays(items, arrays)), x.dtype)


def _axes_taken(item: Any) -> int:
    """How many axes of the value an item of an index stands for."""
    if item is None:
        return 0
    return len(item.shape) if getattr(item, "dtype", None) == "bool" else 1


def _check_place(place: int, size: AnySize, axis: int) -> None:
    if isinstance(size, int) and size != UNKNOWN and not -size <= place < size:
        raise OperatorError(f"index {place} is out of bounds for axis {axis} with size {size}")


def _shape_of_items(shape: Shape, items: tuple[Any, ...]) -> Shape:
    """The shape of the part: what arrays pick comes where they stand, or first where they do not stand together."""
    rest = len(shape) - sum(_axes_taken(i) for i in items if i is not Ellipsis)
    if rest < 0:
        raise ShapeError(f"the index names {len(shape) - rest} axes of a value with {len(shape)}")
    if Ellipsis not in [i for i in items if not isinstance(i, Spec)]:
        items = (*items, Ellipsis)
    sizes: list[Any] = []
    picked: list[Shape] = []
    places, axis = [], 0
    for number, item in enumerate(items):
        if isinstance(item, (Spec, int)):
            sizes_here = (UNKNOWN,) if isinstance(item, Spec) and item.dtype == "bool" else getattr(item, "shape", ())
            picked.append(sizes_here)
            places.append((number, len(sizes)))
            if isinstance(item, int):
                _check_place(item, shape[axis], axis)
        elif item is None:
            sizes.append(1)
        elif item is Ellipsis:
            sizes.extend(shape[axis : axis + rest])
            axis += rest
            continue
        else:
            sizes.append(UNKNOWN if shape[axis] == UNKNOWN else length_of_slice(shape[axis], item))
        axis += _axes_taken(item)
    if not places:
        return tuple(sizes)
    together = places[-1][0] - places[0][0] == len(places) - 1
    start = places[0][1] if together else 0
    return (*sizes[:start], *broadcast(*picked), *sizes[start:])


@operator(_infer_take_items, checked=True)
def take_items(*values: Any, items: tuple[Any, ...]) -> Any:
    """The part of the first value that numbers, slices and the other values, arrays of places or a mask, name."""
    return values[0][_with_arrays(items, values[1:])]


@take_items.gradient
def _(values_from_1: Any, values_like: Any, dout: Any, items: tuple[Any, ...]) -> Any:
    return [add_items([dout, values_like[0], *values_from_1], items=items), *[None] * len(values_from_1)]


@take_items.in_onnx
def _(onnx: Any, values: Any, items: tuple[Any, ...]) -> Any:
    return _take_in_onnx(onnx, values[0], values[1:], items)


def _take_in_onnx(onnx: Any, x: Any, arrays: Any, items: tuple[Any, ...]) -> Any:
    """The axes that arrays and numbers pick from go to the front; what is picked is put where NumPy has it."""
    every = _places_in_onnx(onnx, _one_each(_with_arrays(items, arrays), x.rank))
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


def _places_in_onnx(onnx: Any, items: list[Any]) -> list[Any]:
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


def _together_in_onnx(onnx: Any, places: list[Any]) -> tuple[Any, int]:
    """Arrays of places, broadcast together, along a new last axis; and how many axes they have without it."""
    width = max(array.rank for array in places)
    if len(places) > 1:
        total = places[0]
        for array in places[1:]:
            total = total + array
        places = [onnx.Expand(array, onnx.Shape(total)) for array in places]
    return onnx.Concat(*(onnx.Unsqueeze(array, [-1]) for array in places), axis=-1), width


@operator(lambda *values, items: Spec(values[1].shape, values[0].dtype))
def add_items(*values: Any, items: tuple[Any, ...]) -> Any:
    """Zeros in the shape of the second value, with the first one added to the part that an index names."""
    out = np.zeros(values[1].shape, values[0].dtype)
    np.add.at(out, _with_arrays(items, values[2:]), values[0])
    return out


@add_items.gradient
def _(values_from_2: Any, dout: Any, items: tuple[Any, ...]) -> Any:
    return [take_items([dout, *values_from_2], items=items), None, *[None] * len(values_from_2)]


@add_items.in_onnx
def _(onnx: Any, values: Any, items: tuple[Any, ...]) -> Any:
    y, like, *arrays = values
    return onnx.placed(y, like, lambda places: _take_in_onnx(onnx, places, arrays, items), add=True)


@operator(lambda *values, items: values[0])
def put_items(*values: Any, items: tuple[Any, ...]) -> Any:
    """The first value, with the second in the part that numbers, slices and the other values name."""
    out = values[0].copy()
    out[_with_arrays(items, values[2:])] = values[1]
    return out


@put_items.gradient
def _(values_from_2: Any, values_like: Any, dout: Any, items: tuple[Any, ...]) -> Any:
    part, places = values_like[1], values_from_2
    rest = put_items([dout, np.zeros((), dout.dtype), *places], items=items)
    put = REGISTRY["sum_like"](take_items([dout, *places], items=items), part)
    return [rest, put if put.dtype == part.dtype else put.astype(part.dtype), *[None] * len(places)]


@put_items.in_onnx
def _(onnx: Any, values: Any, items: tuple[Any, ...]) -> Any:
    x, y, *arrays = values
    there = onnx.placed(onnx.constant(True), x, lambda places: _take_in_onnx(onnx, places, arrays, items))
    return onnx.Where(there, onnx.placed(y, x, lambda places: _take_in_onnx(onnx, places, arrays, items)), x)


def array_index(index: Any) -> tuple[list[Any], tuple[Any, ...]]:
    """The arrays of a Python index, and the index as plain data in which they are numbered."""
    arrays: list[Any] = []
    items: list[Any] = []
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, (list, range, bool)) or (hasattr(item, "dtype") and not isinstance(item, np.integer)):
            items.append(("array", len(arrays)))
            arrays.append(item if hasattr(item, "dtype") else np.asarray(item, None if item else np.int64))
        else:
            items.extend(plain_index(int(item) if isinstance(item, np.integer) else item))
    return arrays, tuple(items)


@public(method=True)
def slice_(input: Any, axes: Any, starts: Any, ends: Any) -> Any:
    """The part between two places along each of the axes listed."""
    return strided_slice(input, axes, starts, ends, [1] * len(axes))


@public(method=True)
def strided_slice(x: Any, axes: Any, starts: Any, ends: Any, strides: Any, name: Any = None) -> Any:
    """The part between two places along each of the axes listed, taken in steps."""
    parts: list[Any] = [slice(None)] * len(x.shape)
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        parts[normal_axis(int(axis), len(parts))] = slice(int(start), int(end), int(stride))
    return getitem(x, index=plain_index(tuple(parts)))


@public(method=True)
def gather_nd(x: Any, index: Any, name: Any = None) -> Any:
    """The parts whose places along the first axes are listed in the last axis of `index`."""
    places = [getitem(index, index=("...", k)) for k in range(index.shape[-1])]
    return take_items([x, *places], items=tuple(("array", k) for k in range(len(places))))


@public(method=True)
def scatter_nd_add(x: Any, index: Any, updates: Any, name: Any = None) -> Any:
    """The value, with updates added to the parts that `index` names as in `gather_nd`."""
    places = [getitem(index, index=("...", k)) for k in range(index.shape[-1])]
    return x + add_items([updates, x, *places], items=tuple(("array", k) for k in range(len(places))))


@public()
def scatter_nd(index: Any, updates: Any, shape: Any, name: Any = None) -> Any:
    """Zeros, with updates added to the parts that `index` names as in `gather_nd`."""
    places = [getitem(index, index=("...", k)) for k in range(index.shape[-1])]
    like = np.zeros(tuple(shape), canonical(updates.dtype))
    return add_items([updates, like, *places], items=tuple(("array", k) for k in range(len(places))))
