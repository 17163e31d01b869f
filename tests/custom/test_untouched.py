"""A function that writes into what it is given: seen where that is asked for, and known by its source to a compiler."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import app
from app.custom.untouched import inputs_watched, writes_into
from app.errors import OperatorError


def writes(x, y):
    y[...] = x
    return y


def test_inside_the_block_a_write_is_an_error_that_names_the_operator_and_the_argument():
    operator = app.custom_op(writes, name="first")
    x, y = (app.to_tensor(np.arange(3.0) + n) for n in range(2))
    with inputs_watched(), pytest.raises(OperatorError, match=r"operator first .*it wrote into its argument 2, which"):
        operator(x, y)


def test_outside_of_it_nobody_looks():
    operator = app.custom_op(writes, name="second")
    x, y = (app.to_tensor(np.arange(3.0) + n) for n in range(2))
    assert operator(x, y).numpy().tolist() == [0, 1, 2]


def test_a_write_that_changes_nothing_is_none():
    operator = app.custom_op(writes, name="third")
    x = app.to_tensor([1.0, float("nan")])
    with inputs_watched():
        operator(x, app.to_tensor([1.0, float("nan")]))


def test_functions_that_make_new_arrays_pass():
    operator = app.custom_op(lambda x: np.maximum(x, 0), name="fourth")
    with inputs_watched():
        assert operator(app.to_tensor([-1.0, 1.0])).numpy().tolist() == [0, 1]


def into_items(x, scale):
    for i in range(len(x)):
        x[i] *= scale
    return x


def into_rows(x, scale):
    x[0][1:] = scale
    return x


def into_a_copy(x, scale):
    x = x.copy()
    x[0] = scale
    return x


def into_a_new_array(x, scale):
    out = np.empty_like(x)
    out[0] = x[0]
    return out


@pytest.mark.parametrize(
    ("function", "does"), [(into_items, True), (into_rows, True), (into_a_copy, False), (into_a_new_array, False)]
)
def test_the_source_shows_what_is_written_into(function, does):
    assert writes_into(function, [0]) is does
    assert writes_into(numba.njit(function), [0]) is does
    assert not writes_into(function, [1])


def test_a_function_without_source_shows_nothing():
    assert not writes_into(np.sin, [0])
