"""For every operator, a strategy of the calls that it accepts: inputs of which shapes and types, and which settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from app.ops.dtype import FLOATS, INTEGERS, NAMES

NUMBERS = (*INTEGERS, *FLOATS)
ANY = NAMES


@dataclass
class Call:
    """What an operator is called with."""

    inputs: list[np.ndarray]
    attributes: dict[str, Any] = field(default_factory=dict)


def numbers(draw: st.DrawFn, shape: Sequence[int], dtype: str, low: int = -3, high: int = 3) -> np.ndarray:
    """Numbers from `low` to `high`, whole ones among them, so that equal elements and zeros turn up."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    if dtype == "bool":
        return np.asarray(rng.integers(0 if low < 1 else 1, 2, shape)).astype(bool)
    low = max(low, 0) if dtype == "uint8" else low
    if dtype in INTEGERS or draw(st.booleans()):
        return np.asarray(rng.integers(low, high + 1, shape)).astype(dtype)
    return np.asarray(rng.uniform(low, high, shape)).astype(dtype)


shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
Strategy = Callable[..., st.SearchStrategy[Call]]


@st.composite
def one(
    draw: st.DrawFn, dtypes: Sequence[str] = ANY, low: int = -3, high: int = 3, **attributes: st.SearchStrategy[Any]
) -> Call:
    x = numbers(draw, draw(shapes), draw(st.sampled_from(dtypes)), low, high)
    return Call([x], {name: draw(strategy) for name, strategy in attributes.items()})


@st.composite
def broadcasting(
    draw: st.DrawFn,
    count: int = 2,
    dtypes: Sequence[str] = ANY,
    ranges: Sequence[tuple[int, int]] = ((-3, 3),) * 3,
) -> Call:
    found = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, min_side=0, max_side=3))
    return Call(
        [
            numbers(draw, shape, draw(st.sampled_from(dtypes)), *bounds)
            for shape, bounds in zip(found.input_shapes, ranges, strict=False)
        ]
    )


def an_axis(rank: int) -> st.SearchStrategy[int]:
    return st.integers(-max(rank, 1), max(rank, 1) - 1)


@st.composite
def reducing(
    draw: st.DrawFn, dtypes: Sequence[str] = ANY, empty: bool = True, several: bool = True, low: int = -3
) -> Call:
    shape = list(draw(shapes))
    axes = st.one_of(st.none(), an_axis(len(shape)))
    if several:
        sets = st.sets(st.integers(0, len(shape) - 1)) if shape else st.just(set())
        axes |= sets.map(lambda some: tuple(sorted(some)))
    axis = draw(axes)
    reduced = np.arange(len(shape))[list(axis) if isinstance(axis, tuple) else axis] if shape else []
    for i in [] if empty else np.ravel(reduced).astype(int):
        shape[i] = max(shape[i], 1)
    x = numbers(draw, shape, draw(st.sampled_from(dtypes)), low)
    return Call([x], {"axis": axis, "keepdim": draw(st.booleans())})


@st.composite
def spreading(draw: st.DrawFn) -> Call:
    call = draw(reducing(FLOATS))
    like = call.inputs[0]
    y = np.sum(like, axis=call.attributes["axis"], keepdims=call.attributes["keepdim"])
    return Call([y, like], {**call.attributes, "share": draw(st.booleans())})


@st.composite
def along_axis(
    draw: st.DrawFn, dtypes: Sequence[str] = ANY, min_side: int = 0, **attributes: st.SearchStrategy[Any]
) -> Call:
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=min_side, max_side=4))
    x = numbers(draw, shape, draw(st.sampled_from(dtypes)))
    return Call([x], {"axis": draw(an_axis(x.ndim)), **{name: draw(s) for name, s in attributes.items()}})


@st.composite
def stretched(draw: st.DrawFn, as_shape: bool, sums: bool) -> Call:
    """A small value and a larger one that it broadcasts to; summed back or stretched out."""
    small = draw(shapes)
    large = tuple(draw(st.integers(0, 3)) if n == 1 and draw(st.booleans()) else n for n in small)
    large = (*draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)), *large)
    dtype = draw(st.sampled_from(FLOATS))
    source, target = (large, small) if sums else (small, large)
    x = numbers(draw, source, dtype)
    if not as_shape:
        return Call([x, numbers(draw, target, draw(st.sampled_from(FLOATS)))])
    if not sums:
        extra = len(target) - len(source)
        keep = [i >= extra and source[i - extra] == n and draw(st.booleans()) for i, n in enumerate(target)]
        target = tuple(-1 if k else n for n, k in zip(target, keep, strict=True))
    return Call([x], {"shape": list(target)})


# Shape


@st.composite
def reshaping(draw: st.DrawFn) -> Call:
    kept = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    moved = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=4))
    x = numbers(draw, (*kept, *moved), draw(st.sampled_from(ANY)))
    rest = list(draw(st.sampled_from(arrangements(int(np.prod(moved, dtype=int))))))
    if rest and draw(st.booleans()):
        rest[draw(st.integers(0, len(rest) - 1))] = -1
    copied = -1 in rest or draw(st.booleans())
    return Call([x], {"shape": [*[0 if copied else n for n in kept], *rest]})


def arrangements(count: int) -> list[list[int]]:
    """Some lists of sizes whose product is `count`."""
    pairs = [[a, count // a] for a in range(1, count + 1) if count % a == 0]
    return [[count], [1, count], *pairs, *([[]] if count == 1 else [])]


@st.composite
def flattening(draw: st.DrawFn) -> Call:
    call = draw(one())
    rank = call.inputs[0].ndim
    start = draw(st.integers(0, max(rank, 1) - 1))
    stop = draw(st.integers(start, max(rank, 1) - 1))
    if draw(st.booleans()):
        stop -= max(rank, 1)
    return Call(call.inputs, {"start_axis": start, "stop_axis": stop})


@st.composite
def squeezing(draw: st.DrawFn) -> Call:
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=2))
    axis = draw(st.none() | an_axis(len(shape)) | st.lists(an_axis(len(shape)), max_size=2, unique=True))
    return Call([numbers(draw, shape, draw(st.sampled_from(ANY)))], {"axis": axis})


@st.composite
def unsqueezing(draw: st.DrawFn) -> Call:
    call = draw(one())
    rank = call.inputs[0].ndim
    axis = draw(an_axis(rank + 1) | st.lists(an_axis(rank + 1), min_size=1, max_size=2))
    return Call(call.inputs, {"axis": axis})


@st.composite
def transposing(draw: st.DrawFn) -> Call:
    call = draw(one())
    rank = call.inputs[0].ndim
    perm = draw(st.none() | st.permutations(range(rank)))
    if perm is not None:
        perm = [i - rank if draw(st.booleans()) else i for i in perm]
    return Call(call.inputs, {"perm": perm})


@st.composite
def joining(draw: st.DrawFn) -> Call:
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3))
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
    shape = list(draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)))
    axis = draw(an_axis(len(shape)))
    shape[axis] = sum(sizes)
    return Call([numbers(draw, shape, draw(st.sampled_from(ANY)))], {"num_or_sections": parts, "axis": axis})


def plain_items(index: Any) -> tuple[Any, ...]:
    """A Python index as the setting that `getitem` carries."""
    items = index if isinstance(index, tuple) else (index,)
    return tuple(
        ("slice", i.start, i.stop, i.step) if isinstance(i, slice) else "..." if i is Ellipsis else i for i in items
    )


@st.composite
def indexing(draw: st.DrawFn, placing: bool = False) -> Call:
    x = numbers(draw, draw(shapes), draw(st.sampled_from(ANY)))
    index = draw(hnp.basic_indices(x.shape, max_dims=5, allow_newaxis=True, allow_ellipsis=True))
    part = [np.asarray(x[index])] if placing else []
    return Call([*part, x], {"index": plain_items(index)})


@st.composite
def gathering(draw: st.DrawFn, scattering: bool = False) -> Call:
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=3))
    axis = draw(an_axis(len(shape)))
    size = shape[axis]
    places = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    index = numbers(draw, places, draw(st.sampled_from(INTEGERS)), -size, size - 1)
    x = numbers(draw, shape, draw(st.sampled_from(NUMBERS)))
    if not scattering:
        return Call([x, index], {"axis": axis})
    return Call([np.take(x, index, axis), index, x], {"axis": axis})


# Products, losses, updates


@st.composite
def matrices(draw: st.DrawFn, dtypes: Sequence[str] = ANY) -> Call:
    rows, inner, columns = (draw(st.integers(0, 3)) for _ in range(3))
    stacks = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, min_side=1, max_side=3)).input_shapes
    turn_x, turn_y = draw(st.booleans()), draw(st.booleans())
    x_shape = (*stacks[0], *((inner, rows) if turn_x else (rows, inner)))
    y_shape = (*stacks[1], *((columns, inner) if turn_y else (inner, columns)))
    vector = draw(st.sampled_from(["neither", "neither", "x", "y", "both"]))
    x_shape = (inner,) if vector in ("x", "both") else x_shape
    y_shape = (inner,) if vector in ("y", "both") else y_shape
    x, y = (numbers(draw, shape, draw(st.sampled_from(dtypes))) for shape in (x_shape, y_shape))
    return Call([x, y], {"transpose_x": turn_x, "transpose_y": turn_y})


@st.composite
def matrix_steps(draw: st.DrawFn) -> Call:
    rows, inner, columns = (draw(st.integers(0, 3)) for _ in range(3))
    dtype = draw(st.sampled_from(FLOATS))
    turn_x, turn_y = draw(st.booleans()), draw(st.booleans())
    x = numbers(draw, (inner, rows) if turn_x else (rows, inner), dtype)
    y = numbers(draw, (columns, inner) if turn_y else (inner, columns), dtype)
    c, scale = numbers(draw, (rows, columns), dtype), numbers(draw, (), dtype)
    return Call([c, scale, x, y], {"transpose_x": turn_x, "transpose_y": turn_y})


@st.composite
def classes(draw: st.DrawFn, dtypes: Sequence[str] = FLOATS, rows: int = 0, swapped: bool = False) -> Call:
    count, width = draw(st.integers(rows, 5)), draw(st.integers(1, 4))
    scores = numbers(draw, (count, width), draw(st.sampled_from(dtypes)), 0)
    shape = draw(st.sampled_from([(count,), (count, 1)]))
    labels = numbers(draw, shape, draw(st.sampled_from(INTEGERS)), 0, width - 1)
    return Call([labels, scores] if swapped else [scores, labels])


@st.composite
def accuracies(draw: st.DrawFn) -> Call:
    call = draw(classes(NUMBERS, rows=1))
    return Call(call.inputs, {"k": draw(st.integers(1, call.inputs[0].shape[1]))})


@st.composite
def steps(draw: st.DrawFn, states: Sequence[bool] = (), **attributes: st.SearchStrategy[Any]) -> Call:
    """An optimiser's step; of each state, whether it has the parameter's shape or is one number."""
    shape, dtype = draw(shapes), draw(st.sampled_from(("float32", "float64")))
    inputs = [numbers(draw, shape, dtype), numbers(draw, shape, dtype), np.asarray(0.1, dtype)]
    inputs += [numbers(draw, shape, dtype, 1) if shaped else np.asarray(0.5, dtype) for shaped in states]
    return Call(inputs, {name: draw(strategy) for name, strategy in attributes.items()})


@st.composite
def made(draw: st.DrawFn, dtypes: Sequence[str] = ANY, **attributes: st.SearchStrategy[Any]) -> Call:
    settings = {name: draw(strategy) for name, strategy in attributes.items()}
    return Call([], {"shape": draw(shapes), "dtype": draw(st.sampled_from(dtypes)), **settings})


@st.composite
def listed(draw: st.DrawFn) -> Call:
    x = numbers(draw, draw(shapes), draw(st.sampled_from(ANY)))
    return Call([], {"values": tuple(x.ravel().tolist()), "dtype": x.dtype.name, "shape": x.shape})


small_floats = st.floats(0, 2, width=32)
a_dtype = st.sampled_from(ANY)
bounds = st.none() | st.integers(0, 3) | st.floats(0, 3, width=16)

CALLS: dict[str, st.SearchStrategy[Call]] = {
    # one value, element by element
    **dict.fromkeys(["exp", "sin", "cos", "tanh", "floor", "ceil", "round"], one()),
    **dict.fromkeys(["abs", "square", "assign", "isnan", "isinf", "isfinite", "logical_not"], one()),
    **dict.fromkeys(["relu", "sigmoid", "softplus", "silu"], one()),
    **dict.fromkeys(["negative", "sign"], one(NUMBERS)),
    **dict.fromkeys(["log", "sqrt", "rsqrt", "reciprocal"], one(low=1)),
    "log1p": one(low=0),
    "clip": one(NUMBERS, min=bounds, max=bounds),
    "leaky_relu": one(negative_slope=small_floats),
    "elu": one(alpha=small_floats),
    "full_like": one(value=st.integers(0, 5), dtype=st.none() | a_dtype),
    "cast": one(dtype=a_dtype),
    "increment": one(FLOATS, value=small_floats),
    "one_hot": one(INTEGERS, num_classes=st.integers(1, 4)),
    # two values, broadcast
    **dict.fromkeys(["equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"], broadcasting()),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor", "add", "multiply"], broadcasting()),
    **dict.fromkeys(["maximum", "minimum"], broadcasting()),
    "subtract": broadcasting(dtypes=NUMBERS),
    "divide": broadcasting(ranges=[(-3, 3), (1, 3)]),
    **dict.fromkeys(["floor_divide", "remainder"], broadcasting(dtypes=NUMBERS, ranges=[(-3, 3), (1, 3)])),
    "pow": broadcasting(dtypes=NUMBERS, ranges=[(1, 3), (0, 3)]),
    "where": broadcasting(count=3),
    "cast_like": broadcasting(),
    # reductions, and what undoes them
    **dict.fromkeys(["sum", "all", "any", "prod"], reducing()),
    **dict.fromkeys(["max", "min", "mean"], reducing(empty=False)),
    **dict.fromkeys(["argmax", "argmin"], reducing(empty=False, several=False)),
    "cumsum": along_axis(NUMBERS, reverse=st.booleans()),
    "spread": spreading(),
    "sum_to": stretched(as_shape=True, sums=True),
    "sum_like": stretched(as_shape=False, sums=True),
    "expand": stretched(as_shape=True, sums=False),
    "expand_as": stretched(as_shape=False, sums=False),
    **dict.fromkeys(["softmax", "log_softmax"], along_axis(min_side=1)),
    # shape
    "reshape": reshaping(),
    "reshape_like": one().map(lambda call: Call([call.inputs[0].ravel(), *call.inputs])),
    "flatten": flattening(),
    "squeeze": squeezing(),
    "unsqueeze": unsqueezing(),
    "transpose": transposing(),
    "concat": joining(),
    "split": cutting(),
    "getitem": indexing(),
    "place": indexing(placing=True),
    "gather": gathering(),
    "scatter_add": gathering(scattering=True),
    # products and losses
    "matmul": matrices(),
    "matmul_step": matrix_steps(),
    "softmax_with_cross_entropy": classes(),
    "pick": classes(ANY),
    "one_hot_like": classes(ANY, swapped=True),
    "accuracy": accuracies(),
    # values from nothing
    "fill_constant": made(value=st.integers(0, 5)),
    "assign_value": listed(),
    "uniform_random": made(FLOATS, min=st.just(-1.0), max=st.just(2.0)),
    "gaussian_random": made(FLOATS, mean=st.just(1.0), std=st.just(2.0)),
    "integer_random": made(INTEGERS, low=st.integers(0, 3), high=st.integers(4, 9)),
    # optimisers
    "sgd": steps(),
    "momentum": steps([True], mu=small_floats, use_nesterov=st.booleans()),
    "adam": steps([True, True, False, False]),
}
