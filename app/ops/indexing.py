"""Parts of a value as Python's brackets name them: by numbers, slices, and arrays of numbers or of truth values."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import DtypeError, ShapeError
from app.ops.composed import composed
from app.ops.definition import operator
from app.ops.dtype import INTEGERS
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
    items = _index(index)
    value = np.broadcast_to(False, [_ANY_SIZE if size == UNKNOWN else size for size in x.shape])
    uncut = value[tuple(slice(None) if isinstance(i, slice) else i for i in items)]
    sizes = zip(value[items].shape, uncut.shape, strict=True)
    return Spec(tuple(UNKNOWN if full == _ANY_SIZE else size for size, full in sizes), x.dtype)


_ANY_SIZE = 1_000_003
"""Stands for an unknown size: in the uncut value it shows which axes of a part have one."""


@operator(_infer_getitem, views=True)
def getitem(x: Any, *, index: tuple[Any, ...]) -> Any:
    """A part of the value, by numbers and slices."""
    return x[_index(index)]


@getitem.gradient
def _(x_like: Any, dout: Any, index: tuple[Any, ...]) -> Any:
    return place(dout, x_like, index=index)


@operator(lambda y, like, *, index: Spec(like.shape, y.dtype))
def place(y: Any, like: Any, *, index: tuple[Any, ...]) -> Any:
    """Zeros in the shape of `like`, with `y` in the part that the index names."""
    out = np.zeros(like.shape, y.dtype)
    out[_index(index)] = y
    return out


@place.gradient_of("y")
def _(dout: Any, index: tuple[Any, ...]) -> Any:
    return getitem(dout, index=index)


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
    return len(item.shape) if isinstance(item, Spec) and item.dtype == "bool" else 1


def _shape_of_items(shape: tuple[int, ...], items: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of the part: what arrays pick comes where they stand, or first where they do not stand together."""
    rest = len(shape) - sum(_axes_taken(i) for i in items if i is not Ellipsis)
    if rest < 0:
        raise ShapeError(f"the index names {len(shape) - rest} axes of a value with {len(shape)}")
    if Ellipsis not in [i for i in items if not isinstance(i, Spec)]:
        items = (*items, Ellipsis)
    sizes: list[int] = []
    picked: list[tuple[int, ...]] = []
    places, axis = [], 0
    for number, item in enumerate(items):
        if isinstance(item, (Spec, int)):
            sizes_here = (UNKNOWN,) if isinstance(item, Spec) and item.dtype == "bool" else getattr(item, "shape", ())
            picked.append(sizes_here)
            places.append((number, len(sizes)))
        elif item is None:
            sizes.append(1)
        elif item is Ellipsis:
            sizes.extend(shape[axis : axis + rest])
            axis += rest
            continue
        else:
            size = shape[axis]
            sizes.append(UNKNOWN if size == UNKNOWN else len(range(*item.indices(size))))
        axis += _axes_taken(item)
    together = places[-1][0] - places[0][0] == len(places) - 1
    start = places[0][1] if together else 0
    return (*sizes[:start], *broadcast(*picked), *sizes[start:])


@operator(_infer_take_items, checked=True)
def take_items(*values: Any, items: tuple[Any, ...]) -> Any:
    """The part of the first value that numbers, slices and the other values, arrays of places or a mask, name."""
    return values[0][_with_arrays(items, values[1:])]


@take_items.gradient
def _(values: Any, dout: Any, items: tuple[Any, ...]) -> Any:
    return [add_items([dout, *values], items=items), *[None] * (len(values) - 1)]


@operator(lambda *values, items: Spec(values[1].shape, values[0].dtype))
def add_items(*values: Any, items: tuple[Any, ...]) -> Any:
    """Zeros in the shape of the second value, with the first one added to the part that an index names."""
    out = np.zeros(values[1].shape, values[0].dtype)
    np.add.at(out, _with_arrays(items, values[2:]), values[0])
    return out


@add_items.gradient
def _(values: Any, dout: Any, items: tuple[Any, ...]) -> Any:
    return [take_items([dout, *values[2:]], items=items), *[None] * (len(values) - 1)]


def array_index(index: Any) -> tuple[list[Any], tuple[Any, ...]]:
    """The arrays of a Python index, and the index as plain data in which they are numbered."""
    arrays: list[Any] = []
    items: list[Any] = []
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, (list, bool)) or (hasattr(item, "dtype") and not isinstance(item, np.integer)):
            items.append(("array", len(arrays)))
            arrays.append(item if hasattr(item, "dtype") else np.asarray(item, None if item else np.int64))
        else:
            items.extend(plain_index(int(item) if isinstance(item, np.integer) else item))
    return arrays, tuple(items)


@composed
def slice_(input: Any, axes: Any, starts: Any, ends: Any) -> Any:
    """The part between two places along each of the axes listed."""
    return strided_slice(input, axes, starts, ends, [1] * len(axes))


@composed
def strided_slice(x: Any, axes: Any, starts: Any, ends: Any, strides: Any, name: Any = None) -> Any:
    """The part between two places along each of the axes listed, taken in steps."""
    parts: list[Any] = [slice(None)] * len(x.shape)
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        parts[normal_axis(int(axis), len(parts))] = slice(int(start), int(end), int(stride))
    return getitem(x, index=plain_index(tuple(parts)))


@composed
def gather_nd(x: Any, index: Any, name: Any = None) -> Any:
    """The parts whose places along the first axes are listed in the last axis of `index`."""
    places = [getitem(index, index=("...", k)) for k in range(index.shape[-1])]
    return take_items([x, *places], items=tuple(("array", k) for k in range(len(places))))


@composed
def scatter_nd_add(x: Any, index: Any, updates: Any, name: Any = None) -> Any:
    """The value, with updates added to the parts that `index` names as in `gather_nd`."""
    places = [getitem(index, index=("...", k)) for k in range(index.shape[-1])]
    return x + add_items([updates, x, *places], items=tuple(("array", k) for k in range(len(places))))
