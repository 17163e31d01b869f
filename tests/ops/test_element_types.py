"""Element types: the common type of values, the types of results, and spellings."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
import pytest

import app
from app import to_tensor
from app.errors import DtypeError
from app.ops import REGISTRY
from app.ops.dtype import FLOATS, INTEGERS, NAMES, canonical
from app.ops.elementwise import result_type
from app.ops.spec import spec_of

WHOLE = ["bool", *INTEGERS]


def expected_type(left: str, right: str) -> str:
    """A float keeps its width beside whole numbers; the wider of two floats, or what NumPy says of whole numbers."""
    floats = [dtype for dtype in (left, right) if dtype in FLOATS]
    return max(floats, key=FLOATS.index) if floats else np.result_type(left, right).name


# Two values with axes, or two without


@pytest.mark.parametrize(("left", "right"), [*itertools.product(NAMES, NAMES)])
def test_the_common_type_of_two_values(left: str, right: str):
    x, y, expected = app.ones([2], left), app.ones([2], right), expected_type(left, right)
    results = [x + y, x * y, app.maximum(x, y), app.where(x > 0, x, y), app.concat([x, y]), x[0] + y[0]]
    assert [v.dtype for v in results] == [expected] * 6
    assert result_type([x, y]) == expected


# A value with axes beside one without, or beside a number


@pytest.mark.parametrize(
    ("axes", "none", "result"),
    [
        ("float32", "float64", "float32"),
        ("float64", "float32", "float64"),
        ("float16", "float32", "float16"),
        ("int32", "int64", "int32"),
        ("int8", "int64", "int8"),
        ("float32", "int64", "float32"),
        ("float32", "bool", "float32"),
        ("int32", "float64", "float64"),
        ("int64", "float16", "float16"),
        ("bool", "int64", "int64"),
    ],
)
def test_a_value_without_axes_counts_as_a_number_as_in_paddle_and_pytorch(axes: str, none: str, result: str):
    x, number = app.ones([2], axes), app.ones([], none)
    assert (x + number).dtype == app.maximum(number, x).dtype == result
    assert app.where(to_tensor([True, False]), x, number).dtype == result
    assert (x + app.ones([1], none)).dtype == expected_type(axes, none)  # which has an axis


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("value", [True, 2, 2.5, np.bool_(True), np.int8(2), np.int64(2), np.float32(2), np.float64(2)])
def test_a_number_changes_only_the_kind_of_a_tensor(dtype: str, value: Any):
    expected = dtype
    if isinstance(value, (float, np.floating)) and dtype in WHOLE:
        expected = "float32"
    elif isinstance(value, (int, np.integer)) and not isinstance(value, bool) and dtype == "bool":
        expected = np.asarray(value).dtype.name
    of_python = isinstance(value, (int, float))  # as np.float64 is; other numbers of NumPy count as tensors do
    for x in (app.ones([2], dtype), app.ones([], dtype))[: 1 + of_python]:
        results = [x * value, value * x, app.maximum(x, value)]
        assert [v.dtype for v in results] == [expected] * 3
        assert all(isinstance(v, app.Tensor) for v in results)


def test_numbers_alone_have_the_default_types():
    assert [result_type(some) for some in ([1, 2.5], [True, 2], [sys.maxsize])] == ["float32", "int64", "int64"]
    chosen = to_tensor([True, False])
    types = [app.where(chosen, x, y).dtype for x, y in ((1.0, 0.0), (1, 0), (1, 0.5))]
    assert types == ["float32", "int64", "float32"]
    assert (app.ones([1], "int8") * 0.5).tolist() == [0.5]


def test_a_gradient_has_the_type_of_its_value():
    scale = to_tensor(2.0, "float64", stop_gradient=False)
    x = to_tensor([1.0, 3.0], "float32", stop_gradient=False)
    y = to_tensor([1.0, 1.0], "float64", stop_gradient=False)
    (x * scale * y).sum().backward()
    gradients = [(v.grad.dtype, v.grad.tolist()) for v in (scale, x, y)]
    assert gradients == [("float64", 4.0), ("float32", [2.0, 2.0]), ("float64", [2.0, 6.0])]


# Functions


@pytest.mark.parametrize("whole", WHOLE)
def test_functions_of_real_numbers_turn_whole_numbers_into_the_default_float_and_sums_into_int64(whole: str):
    n = app.ones([2], whole)
    for name in ("exp", "sqrt", "sigmoid", "mean", "softmax", "leaky_relu", "elu", "reciprocal"):
        assert REGISTRY[name](n).dtype == "float32"
    assert app.divide(n, n).dtype == "float32"
    assert app.sum(n).dtype == "int64"
    assert app.sum(to_tensor(np.full(300, 1, whole))).item() == 300


def test_the_default_float_can_be_chosen():
    assert (to_tensor([1, 2]) * 0.5).dtype == "float32"  # which is not remembered for later calls
    app.set_default_dtype("float64")
    try:
        assert app.exp(app.ones([1], "int64")).dtype == "float64"
        assert (to_tensor([1, 2]) * 0.5).dtype == "float64"
        assert to_tensor(1.5).dtype == app.zeros([1]).dtype == app.nn.Linear(1, 1).weight.dtype == "float64"
    finally:
        app.set_default_dtype("float32")
    with pytest.raises(DtypeError, match="must be one of float16, float32, float64, not int64"):
        app.set_default_dtype("int64")


# Updates


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("first", FLOATS)
@pytest.mark.parametrize(
    "name", ["sgd", "momentum", "adam", "rmsprop", "running_mean", "in_training", "matmul_step", "increment"]
)
def test_what_is_updated_keeps_its_type_whatever_it_is_updated_with(name: str, first: str):
    definition = REGISTRY[name]
    inputs = [np.ones([2, 2], first), *(np.ones([2, 2], "float64") for _ in definition.inputs[1:])]
    for training in (True, False):
        settings = {k: training if k == "training" else v for k, v in definition.attributes.items()}
        results, expected = definition.run(inputs, settings), definition.infer_outputs(map(spec_of, inputs), settings)
        types = [x.dtype.name for x in (results if isinstance(results, tuple) else [results])]
        assert types == [spec.dtype for spec in expected]


# Spellings


class Named(str):
    def __str__(self) -> str:
        return f"mine.{super().__str__()}"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        *[("float", "float32"), ("double", "float64"), (float, "float32"), (int, "int64"), (bool, "bool")],
        *[(np.float16, "float16"), (np.dtype("uint8"), "uint8"), (app.int32, "int32"), (Named("float"), "float32")],
    ],
)
def test_an_element_type_can_be_spelled_in_many_ways(spelling: Any, name: str):
    assert canonical(spelling) == name
    assert type(canonical(spelling)) is str


@pytest.mark.parametrize(
    "spelling",
    ["float8", "complex64", np.complex128, "uint16", "U3", None, "", ",", "2,f4", "(1,2", "(9999,9999)f4", []],
)
def test_an_unknown_element_type_is_an_error_that_lists_the_known_ones(spelling: Any):
    with pytest.raises(DtypeError) as caught:
        canonical(spelling)
    assert all(name in str(caught.value) for name in NAMES)
    assert repr(spelling) in str(caught.value)


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "M8[D]", "m8[s]", "longdouble"])
def test_arrays_of_other_types_are_refused_where_whole_numbers_become_floats(dtype: str):
    squared = app.custom_op(lambda x: x * x, name="squared", elementwise=True)
    for function in (app.exp, squared):
        with pytest.raises(DtypeError, match="is not an element type"):
            function(np.ones(2, "i8").astype(dtype))
