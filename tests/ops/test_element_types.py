"""The element types that values meet in, that functions give, and how they can be spelled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import to_tensor
from app.errors import DtypeError
from app.ops import REGISTRY
from app.ops.dtype import FLOATS, INTEGERS, NAMES, canonical


@pytest.mark.parametrize("number", FLOATS)
@pytest.mark.parametrize("whole", ["bool", *INTEGERS])
def test_a_float_beats_whole_numbers_and_keeps_its_width(number: str, whole: str):
    x, n = app.ones([2], number), app.ones([2], whole)
    assert [v.dtype for v in (x + n, n + x, n * x, app.where(n, x, n), app.concat([n, x]))] == [number] * 5


@pytest.mark.parametrize("left", FLOATS)
@pytest.mark.parametrize("right", FLOATS)
def test_the_wider_of_two_floats_wins(left: str, right: str):
    assert (app.ones([1], left) + app.ones([1], right)).dtype == max(left, right, key=FLOATS.index)


@pytest.mark.parametrize("left", INTEGERS)
@pytest.mark.parametrize("right", INTEGERS)
def test_whole_numbers_meet_in_a_type_that_holds_both(left: str, right: str):
    found = (app.ones([1], left) + app.ones([1], right)).dtype
    assert found == np.result_type(left, right).name


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("number", [2, 2.5, True])
def test_a_python_number_follows_a_float(dtype: str, number: Any):
    x = app.ones([1], dtype)
    assert [v.dtype for v in (x * number, number * x, app.maximum(x, number), x**number)] == [dtype] * 4


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_python_whole_number_follows_whole_numbers_and_a_python_float_makes_floats(dtype: str):
    n = app.ones([1], dtype)
    assert ((n * 2).dtype, (2 - n).dtype, (n * True).dtype) == (dtype,) * 3
    assert ((n * 2.5).dtype, (n > 0.5).dtype) == ("float32", "bool")
    assert (n * 0.5).tolist() == [0.5]


def test_a_python_number_beside_truth_values_is_counted_in_the_default_types():
    b = app.ones([1], "bool")
    assert ((b * 2).dtype, (b * 0.5).dtype, (b + True).dtype) == ("int64", "float32", "bool")


def test_python_numbers_alone_have_the_default_types():
    chosen = app.to_tensor([True, False])
    assert app.where(chosen, 1.0, 0.0).dtype == "float32"
    assert app.where(chosen, 1, 0).dtype == "int64"
    assert app.where(chosen, 1, 0.5).dtype == "float32"


@pytest.mark.parametrize("whole", ["bool", *INTEGERS])
@pytest.mark.parametrize("name", ["exp", "sqrt", "sigmoid", "mean", "softmax", "leaky_relu", "elu", "reciprocal"])
def test_functions_of_real_numbers_turn_whole_numbers_into_the_default_float(name: str, whole: str):
    n = app.ones([2], whole)
    assert REGISTRY[name](n).dtype == "float32"
    assert app.divide(n, n).dtype == "float32"


def test_the_default_float_can_be_chosen():
    app.set_default_dtype("float64")
    try:
        assert app.exp(app.ones([1], "int64")).dtype == "float64"
        assert (to_tensor([1, 2]) * 0.5).dtype == "float64"
        assert to_tensor(1.5).dtype == app.zeros([1]).dtype == app.nn.Linear(1, 1).weight.dtype == "float64"
    finally:
        app.set_default_dtype("float32")
    with pytest.raises(DtypeError, match="must be one of float16, float32, float64, not int64"):
        app.set_default_dtype("int64")


@pytest.mark.parametrize("whole", ["bool", *INTEGERS])
def test_whole_numbers_add_up_as_int64(whole: str):
    assert app.sum(app.ones([3], whole)).dtype == "int64"
    assert app.sum(to_tensor(np.full(300, 1, whole))).item() == 300


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        *[("float", "float32"), ("double", "float64"), (float, "float32"), (int, "int64"), (bool, "bool")],
        *[(np.float16, "float16"), (np.dtype("uint8"), "uint8"), (app.int32, "int32")],
    ],
)
def test_an_element_type_can_be_spelled_in_many_ways(spelling: Any, name: str):
    assert canonical(spelling) == name


@pytest.mark.parametrize(
    "spelling",
    ["float8", "complex64", np.complex128, "uint16", "U3", None, "", ",", "2,f4", "(1,2", "(9999,9999)f4", []],
)
def test_what_is_no_element_type_is_refused_with_the_list_of_those_that_are(spelling: Any):
    with pytest.raises(DtypeError) as caught:
        canonical(spelling)
    assert all(name in str(caught.value) for name in NAMES)
    assert repr(spelling) in str(caught.value)


def test_a_name_that_prints_in_its_own_way_becomes_the_plain_one():
    class Named(str):
        def __str__(self) -> str:
            return f"mine.{super().__str__()}"

    for given in ("float32", "float", "bool"):
        assert type(canonical(Named(given))) is str
        assert str(canonical(Named(given))) == canonical(given)
