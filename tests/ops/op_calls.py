"""For every operator, a strategy of the calls that it accepts: inputs of which shapes and types, and which settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import part_calls as parts
from draws import (
    ANY,
    NUMBERS,
    Call,
    an_axis,
    axis_of,
    broadcasting,
    numbers,
    one,
    reducing,
    shapes,
    sized,
    spreading,
    stretched,
)
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from image_calls import convolving, pooling

from app.ops.definition import REGISTRY, OpDef
from app.ops.dtype import FLOATS, INTEGERS
from app.ops.lowering import Choice, Loop

__all__ = ["CALLS", "OF_VALUES", "Call", "applied"]

# Products, losses, updates


@st.composite
def matrices(draw: st.DrawFn, step: bool = False) -> Call:
    """Two matrices, stacks of them, or vectors; as a step, two matrices of one type after a matrix and a factor."""
    rows, inner, columns = (draw(st.integers(0, 3)) for _ in range(3))
    turn_x, turn_y = draw(st.booleans()), draw(st.booleans())
    settings = {"transpose_x": turn_x, "transpose_y": turn_y}
    x_shape = (inner, rows) if turn_x else (rows, inner)
    y_shape = (columns, inner) if turn_y else (inner, columns)
    if step:
        dtype = draw(st.sampled_from(FLOATS))
        return Call([numbers(draw, shape, dtype) for shape in ((rows, columns), (), x_shape, y_shape)], settings)
    stacks = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, min_side=1, max_side=3)).input_shapes
    vector = draw(st.sampled_from(["neither", "neither", "x", "y", "both"]))
    x_shape = (inner,) if vector in ("x", "both") else (*stacks[0], *x_shape)
    y_shape = (inner,) if vector in ("y", "both") else (*stacks[1], *y_shape)
    return Call([numbers(draw, shape, draw(st.sampled_from(ANY))) for shape in (x_shape, y_shape)], settings)


@st.composite
def byte_products(draw: st.DrawFn, takes: Sequence[str]) -> Call:
    """The inputs of products with fed bytes, by name; a batch has one block of 64 rows."""
    rows, size, columns = (draw(st.integers(1, 4)) for _ in range(3))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    transposed = np.zeros((1, size, 64), "uint8")
    transposed[0, :, :rows] = numbers(draw, (size, rows), "uint8")
    inputs = {
        "data": lambda: numbers(draw, (rows, size), "uint8"),
        "transposed": lambda: transposed,
        "w": lambda: numbers(draw, (size, columns), dtype),
        "y": lambda: numbers(draw, (rows, columns), dtype),
        "rate": lambda: numbers(draw, (), dtype),
    }
    attributes = {} if takes == ["data"] else {"scale": 0.5, "shift": -1.0}
    return Call([inputs[name]() for name in takes], attributes)


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
def creating(draw: st.DrawFn, dtypes: Sequence[str] = ANY, **attributes: st.SearchStrategy[Any]) -> Call:
    settings = {name: draw(strategy) for name, strategy in attributes.items()}
    return Call([], {"shape": draw(shapes), "dtype": draw(st.sampled_from(dtypes)), **settings})


def listed(call: Call) -> Call:
    (x,) = call.inputs
    return Call([], {"values": tuple(x.ravel().tolist()), "dtype": x.dtype.name, "shape": x.shape})


@st.composite
def flattening(draw: st.DrawFn) -> Call:
    call = draw(one())
    rank = max(call.inputs[0].ndim, 1)
    start = draw(st.integers(0, rank - 1))
    stop = draw(st.integers(start, rank - 1))
    return Call(call.inputs, {"start_axis": start, "stop_axis": draw(st.sampled_from([stop, stop - rank]))})


def twice(call: Call) -> Call:
    return Call([call.inputs[0], call.inputs[0] + call.inputs[0].dtype.type(1)], call.attributes)


def to_sizes(call: Call, with_value: bool = True, **settings: Any) -> Call:
    """The sizes of a value, backwards where that is possible, as another value."""
    shape = call.inputs[0].shape
    sizes = shape if 0 in shape else shape[::-1]
    return Call([*call.inputs[: int(with_value)], np.array(sizes, "int64")], {"known": sizes, **settings})


def applied(definition: OpDef, values: Sequence[Any], attributes: dict[str, Any]) -> list[Any]:
    """The results of a call, as a list."""
    results = definition(list(values), **attributes) if definition.variadic else definition(*values, **attributes)
    return list(results) if isinstance(results, tuple) else [results]


small_floats = st.floats(0, 2, width=32)
a_dtype = st.sampled_from(ANY)
bounds = st.none() | st.integers(0, 3) | st.integers(0, 3).map(float)

OF_VALUES = {
    name: op
    for name, op in REGISTRY.items()
    if not isinstance(op.lowering, (Choice, Loop)) and name != "while_loop_gradient"
}
"""Operators without sub-blocks, which those of control flow have."""

CALLS: dict[str, st.SearchStrategy[Call]] = {
    # one value, element by element
    **dict.fromkeys(["exp", "sin", "cos", "tanh", "floor", "ceil", "trunc"], one()),
    **dict.fromkeys(["sinh", "cosh", "asinh", "atan", "tan", "erf", "expm1"], one()),
    **dict.fromkeys(["asin", "acos"], one(low=-1, high=1)),
    "atanh": one(FLOATS).map(lambda call: Call([call.inputs[0] * call.inputs[0].dtype.type(0.3)])),
    "acosh": one(low=1),
    "round": one(decimals=st.sampled_from([0, 0, 1, -1])),
    **dict.fromkeys(["abs", "square", "assign", "isnan", "isinf", "isfinite", "logical_not"], one()),
    **dict.fromkeys(["relu", "sigmoid", "softplus", "silu", "softsign"], one()),
    **dict.fromkeys(["negative", "sign"], one(NUMBERS)),
    **dict.fromkeys(["log", "log2", "log10", "sqrt", "rsqrt", "reciprocal"], one(low=1)),
    "log1p": one(low=0),
    "clip": one(NUMBERS, min=bounds, max=bounds),
    "leaky_relu": one(negative_slope=small_floats),
    "elu": one(alpha=small_floats),
    "full_like": one(fill_value=st.integers(0, 5), dtype=st.none() | a_dtype),
    "cast": one(dtype=a_dtype),
    "increment": one(FLOATS, value=small_floats),
    "one_hot": one(INTEGERS, low=0, num_classes=st.integers(4, 6)),
    # two values, broadcast
    **dict.fromkeys(["equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"], broadcasting()),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor", "add", "multiply"], broadcasting()),
    **dict.fromkeys(["maximum", "minimum"], broadcasting()),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], broadcasting(dtypes=("bool", *INTEGERS))),
    "bitwise_not": one(("bool", *INTEGERS)),
    "isclose": broadcasting(),
    "in_training": one(FLOATS, training=st.booleans()).map(twice),
    "running_mean": one(FLOATS, momentum=small_floats, training=st.booleans()).map(twice),
    "subtract": broadcasting(dtypes=NUMBERS),
    "atan2": broadcasting(ranges=[(-3, 3), (1, 3)]),
    "divide": broadcasting(ranges=[(-3, 3), (1, 3)]),
    **dict.fromkeys(["floor_divide", "remainder"], broadcasting(dtypes=NUMBERS, ranges=[(-3, 3), (1, 3)])),
    "pow": broadcasting(dtypes=NUMBERS, ranges=[(1, 3), (0, 3)]),
    "where": broadcasting(count=3),
    # reductions, and what undoes them
    **dict.fromkeys(["sum", "all", "any", "prod"], reducing()),
    **dict.fromkeys(["max", "min", "mean"], reducing(empty=False)),
    **dict.fromkeys(["argmax", "argmin"], reducing(empty=False, several=False)),
    "logsumexp": reducing(empty=False),
    **dict.fromkeys(["shape", "numel"], one()),
    "expand_reduced": spreading(),
    "sum_to": stretched(as_shape=True, sums=True),
    "sum_like": stretched(as_shape=False, sums=True),
    "expand": stretched(as_shape=True, sums=False),
    "expand_as": stretched(as_shape=False, sums=False),
    **dict.fromkeys(["softmax", "log_softmax"], one(of=sized(least=1), axis=axis_of)),
    # shape
    "reshape": parts.reshaping(),
    "reshape_to": one().map(to_sizes),
    "fill_sizes": one().map(lambda call: to_sizes(call, with_value=False, value=2.5, dtype="float32")),
    "reshape_like": one().map(lambda call: Call([call.inputs[0].ravel(), *call.inputs])),
    "flatten": flattening(),
    "squeeze": one(
        of=sized(max_dims=4, most=2),
        axis=lambda x: st.none() | axis_of(x) | st.lists(axis_of(x), max_size=2, unique=True),
    ),
    "unsqueeze": one(axis=lambda x: an_axis(x.ndim + 1) | st.lists(an_axis(x.ndim + 1), min_size=1, max_size=2)),
    "transpose": one(perm=lambda x: st.none() | st.permutations(range(x.ndim)) | st.permutations(range(-x.ndim, 0))),
    "concat": parts.joining(),
    "split": parts.cutting(),
    "gather": parts.gathering(),
    "take_items": parts.taking_items(),
    "put_items": parts.putting_items(),
    "last_writes": parts.taking_items(),
    "split_like": parts.cutting_like(),
    "argsort": one(NUMBERS, of=sized(least=1), axis=axis_of, descending=st.booleans()),
    # products and losses
    "matmul": matrices(),
    "matmul_step": matrices(step=True),
    "byte_product": byte_products(["data", "w"]),
    "transposed_bytes": byte_products(["data"]),
    "transposed_byte_product": byte_products(["transposed", "y"]),
    "transposed_byte_product_step": byte_products(["w", "rate", "transposed", "y"]),
    "conv2d": convolving(),
    "conv2d_input": convolving("x"),
    "conv2d_weight": convolving("weight"),
    "max_pool2d": pooling(),
    "max_pool2d_scatter": pooling(pooled_first=True),
    "max_pool2d_gather": pooling(images_twice=True),
    "avg_pool2d": pooling(mean=True),
    "avg_pool2d_expand": pooling(pooled_first=True, mean=True),
    "softmax_with_cross_entropy": classes(),
    "index_sample": classes(ANY),
    "one_hot_like": classes(ANY, swapped=True),
    "accuracy": accuracies(),
    # values from nothing
    "fill_constant": creating(value=st.integers(0, 5)),
    "assign_value": one().map(listed),
    "uniform_random": creating(FLOATS, min=st.just(-1.0), max=st.just(2.0)),
    "gaussian_random": creating(FLOATS, mean=st.just(1.0), std=st.just(2.0)),
    "integer_random": creating(INTEGERS, low=st.integers(0, 3), high=st.integers(4, 9)),
    "dropout_mask": one(
        FLOATS,
        p=st.sampled_from([0.0, 0.25, 1.0]),
        mode=st.sampled_from(["upscale_in_train", "downscale_in_infer"]),
        training=st.just(False),
    ),
    # optimisers
    "sgd": steps(),
    "momentum": steps([True], mu=small_floats, use_nesterov=st.booleans()),
    "adam": steps([True, True, False, False], coeff=small_floats),
    "rmsprop": steps([True] * 3, momentum=small_floats),
}
