"""Strategies of calls of operators that reshape, join, cut and pick parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from draws import ANY, NUMBERS, Call, an_axis, numbers, shapes, sized
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from app.ops.dtype import INTEGERS
from app.ops.indexing import along, index_items


@st.composite
def reshaping(draw: st.DrawFn) -> Call:
    leading = draw(sized(max_dims=2, most=3))
    moved = draw(sized(max_dims=2, least=1))
    x = numbers(draw, (*leading, *moved), draw(st.sampled_from(ANY)))
    rest = list(draw(st.sampled_from(arrangements(int(np.prod(moved, dtype=int))))))
    if rest and draw(st.booleans()):
        rest[draw(st.integers(0, len(rest) - 1))] = -1
    copied = -1 in rest or draw(st.booleans())
    return Call([x], {"shape": [*[0 if copied else n for n in leading], *rest]})


def arrangements(count: int) -> list[list[int]]:
    """Some lists of sizes whose product is `count`."""
    pairs = [[a, count // a] for a in range(1, count + 1) if count % a == 0]
    return [[count], [1, count], *pairs, *([[]] if count == 1 else [])]


@st.composite
def joining(draw: st.DrawFn) -> Call:
    shape = draw(sized(min_dims=1, most=3))
    axis = draw(an_axis(len(shape)))
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        sizes = list(shape)
        sizes[axis] = draw(st.integers(0, 3))
        parts.append(numbers(draw, sizes, draw(st.sampled_from(ANY))))
    return Call(parts, {"axis": axis})


@st.composite
def cutting(draw: st.DrawFn) -> Call:
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    parts: Any = list(sizes)
    if draw(st.booleans()):
        parts, sizes = len(sizes), [sizes[0]] * len(sizes)
    elif draw(st.booleans()):
        parts[draw(st.integers(0, len(parts) - 1))] = -1
    shape = list(draw(sized(min_dims=1, most=3)))
    axis = draw(an_axis(len(shape)))
    shape[axis] = sum(sizes)
    return Call([numbers(draw, shape, draw(st.sampled_from(ANY)))], {"num_or_sections": parts, "axis": axis})


@st.composite
def by_slices(draw: st.DrawFn) -> Call:
    """A value, and an index of numbers, slices and new axes."""
    x = numbers(draw, draw(shapes), draw(st.sampled_from(NUMBERS)))
    index = draw(hnp.basic_indices(x.shape, max_dims=5, allow_newaxis=True, allow_ellipsis=True))
    return Call([x], {"items": index_items(index)[1]})


@st.composite
def gathering(draw: st.DrawFn) -> Call:
    shape = draw(sized(min_dims=1, least=1, most=3))
    axis = draw(an_axis(len(shape)))
    size = shape[axis]
    places = draw(sized(max_dims=2, most=3))
    index = numbers(draw, places, draw(st.sampled_from(INTEGERS)), -size, size - 1)
    return Call([numbers(draw, shape, draw(st.sampled_from(NUMBERS))), index], {"axis": axis})


@st.composite
def cutting_like(draw: st.DrawFn) -> Call:
    call = draw(joining())
    call.inputs = [part.astype(call.inputs[0].dtype) for part in call.inputs]
    return Call([np.concatenate(call.inputs, call.attributes["axis"]), *call.inputs], call.attributes)


@st.composite
def by_arrays(draw: st.DrawFn) -> Call:
    """A value, and an index with arrays of places or with a mask among its items."""
    shape = draw(sized(min_dims=1, least=1, most=3))
    x = numbers(draw, shape, draw(st.sampled_from(NUMBERS)))
    places = draw(sized(max_dims=2, most=2))
    arrays: list[np.ndarray] = []
    items: list[Any] = []
    axis = 0
    while axis < len(shape):
        kind = draw(st.sampled_from(["array", "array", "slice", "number", "mask", "...", "new"]))
        if kind == "array":
            items.append(("array", len(arrays)))
            arrays.append(numbers(draw, places, draw(st.sampled_from(INTEGERS)), -shape[axis], shape[axis] - 1))
        elif kind == "mask" and not arrays:
            ranks = draw(st.integers(1, len(shape) - axis))
            items.append(("array", len(arrays)))
            arrays.append(numbers(draw, shape[axis : axis + ranks], "bool", 0, 1))
            items += [("slice", None, None, None)] * (len(shape) - axis - ranks)
            break
        elif kind == "slice":
            items.append(("slice", draw(st.none() | st.integers(-2, 2)), None, draw(st.sampled_from([None, 2, -1]))))
        elif kind == "number":
            items.append(draw(st.integers(-shape[axis], shape[axis] - 1)))
        elif kind == "new":
            items.append(None)
            continue
        else:
            if "..." not in items:
                items.append("...")
            break
        axis += 1
    if not arrays:
        items, arrays = [("array", 0)], [np.zeros(places, "int64")]
    return Call([x, *arrays], {"items": tuple(items)})


@st.composite
def along_lines(draw: st.DrawFn) -> Call:
    """A value, and for some lines along an axis places in it, each once."""
    shape = draw(sized(min_dims=1, least=1, most=3))
    axis = draw(st.integers(0, len(shape) - 1))
    x = numbers(draw, shape, draw(st.sampled_from(NUMBERS)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    some = tuple(slice(draw(st.integers(0, size))) for size in shape)
    index = np.argsort(rng.random(shape), axis)[some].astype(draw(st.sampled_from(("int32", "int64"))))
    return Call([x, index], {"items": along(axis)})


def taking_items() -> st.SearchStrategy[Call]:
    """A value, and the items of a part of it."""
    return st.one_of(by_slices(), by_arrays(), along_lines())


@st.composite
def putting_items(draw: st.DrawFn) -> Call:
    """A value, what is put into a part of it, and the items of that part."""
    call = draw(taking_items())
    x, *arrays = call.inputs
    part = np.asarray(x[np_items(call)])
    ways = {name: draw(st.booleans()) for name in ("accumulate", "onto_zeros")}
    return Call([x, part, *arrays], {**call.attributes, **ways})


def np_items(call: Call) -> tuple[Any, ...]:
    """The index of NumPy that the items of a call, whose arrays come after the first value, stand for."""
    index: list[Any] = []
    for item in call.attributes["items"]:
        if isinstance(item, tuple) and item[0] == "along":
            places = [np.arange(n) for n in call.inputs[1].shape]
            grid = np.meshgrid(*places, indexing="ij")
            return tuple(call.inputs[1] if axis == item[1] else grid[axis] for axis in range(len(grid)))
        if isinstance(item, tuple):
            index.append(call.inputs[1 + item[1]] if item[0] == "array" else slice(*item[1:]))
        else:
            index.append(Ellipsis if item == "..." else item)
    return tuple(index)
