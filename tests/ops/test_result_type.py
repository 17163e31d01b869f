"""Type promotion: arrays take precedence over scalars, and these over Python numbers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import app
from app.ops.elementwise import result_type


def with_axes(dtype: str) -> app.Tensor:
    return app.ones([2], dtype)


def number(dtype: str) -> app.Tensor:
    return app.ones([], dtype)


# What Paddle 3.3 and PyTorch 2.13 give, too.
PAIRS = [
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
]


@pytest.mark.parametrize(("axes", "none", "result"), PAIRS)
def test_a_value_without_axes_counts_as_a_number(axes: str, none: str, result: str):
    assert (with_axes(axes) + number(none)).dtype == result
    assert app.maximum(number(none), with_axes(axes)).dtype == result
    assert app.where(app.to_tensor([True, False]), with_axes(axes), number(none)).dtype == result


def test_values_of_one_element_with_an_axis_are_no_numbers():
    assert (app.ones([2], "float32") + app.ones([1], "float64")).dtype == "float64"


def test_its_gradient_has_its_own_type():
    scale = app.to_tensor(2.0, "float64", stop_gradient=False)
    x = app.to_tensor([1.0, 3.0], "float32", stop_gradient=False)
    (x * scale).sum().backward()
    assert (scale.grad.dtype, scale.grad.item()) == ("float64", 4.0)
    assert (x.grad.dtype, x.grad.tolist()) == ("float32", [2.0, 2.0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64"])
@pytest.mark.parametrize("value", [np.float64(2), np.float32(2), np.int64(2), np.int8(2), np.bool_(True)])
def test_a_numpy_number_beside_a_tensor(dtype: str, value: Any):
    wider = value.dtype.kind == "f" and dtype.startswith("int")
    result = "float32" if wider else dtype  # an np.float64 is one of Python's floats
    assert (with_axes(dtype) * value).dtype == result
    assert (value * with_axes(dtype)).dtype == result
    assert isinstance(value * with_axes(dtype), app.Tensor)


@pytest.mark.parametrize(
    ("value", "result"), [(2.5, "float32"), (2, "int8"), (True, "int8"), (np.float64(2), "float32")]
)
def test_a_python_number_beside_a_number_tensor(value: Any, result: str):
    assert (number("int8") + value).dtype == result
    assert (value + number("int8")).dtype == result


def test_result_type():
    assert result_type([1, 2.5]) == "float32"
    assert result_type([True, 2]) == "int64"
    assert result_type([number("float64"), with_axes("int32"), 1]) == "float64"
    assert result_type([number("float64"), with_axes("float32"), number("int64")]) == "float32"


def test_what_is_no_number_is_refused():
    with pytest.raises(TypeError, match="is not a number"):
        result_type([with_axes("float32"), object()])
    with pytest.raises(TypeError, match=r"0.5j \(complex\) is not a number"):
        with_axes("float32") * 0.5j


def test_large_whole_numbers_are_still_whole():
    assert result_type([sys.maxsize]) == "int64"
