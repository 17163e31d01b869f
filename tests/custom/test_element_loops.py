"""Loops over all elements become functions of one number where they are that, and stay what they are elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit

import app
from app import static
from app.custom.on_numbers import on_numbers, returning, stops_on_numbers
from app.errors import OperatorError

SLOPE = 0.1


def flat(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.size):
        y.flat[i] = 0 if x.flat[i] <= 0 else x.flat[i]
    return y


def zeroed(y: Any, dy: Any) -> Any:
    """A gradient."""
    dx = np.zeros_like(y)
    for i in range(dx.size):
        if y.flat[i] > 0:
            dx.flat[i] = dy.flat[i]
    return dx


def nested(x: Any, y: Any) -> Any:
    z = np.ones_like(x)
    w = np.empty_like(z)
    for i in range(len(x)):
        for j in range(y.shape[1]):
            s = 1 / (1 + math.exp(-x[i, j]))
            s *= SLOPE
            if y[i, j] > s:
                z[i, j] = s - np.tanh(y[i, j])
            w[i, j] = max(s, y[i, j])
    return z, w


def series(x: Any, start: float = 2.0) -> Any:
    y = np.empty_like(x)
    for i in range(x.size):
        total = start
        power = 1.0
        for k in range(4):
            power = power * x.flat[i]
            total += power / (k + 1)
        y.flat[i] = total
    return y


def twice(x: Any) -> Any:
    y = np.zeros_like(x)
    z = np.zeros_like(y)
    for i in range(x.size):
        y.flat[i] = x.flat[i]
    for j in range(x.size):
        z.flat[j] = 2 * x.flat[j]
    return z, y


PROVEN = [flat, zeroed, nested, series, twice]


@pytest.mark.parametrize("function", PROVEN)
def test_loops_over_elements_mean_the_same_for_numbers(function: Any):
    proven = on_numbers(function)
    assert proven is not None
    assert stops_on_numbers(function) is None
    count = function.__code__.co_argcount - len(function.__defaults__ or ())
    given = [np.random.default_rng(i).normal(size=(3, 5)).astype(np.float32) for i in range(count)]
    found = [proven.function(*numbers) for numbers in zip(*(array.flat for array in given), strict=True)]
    expected = np.array(function(*given))
    np.testing.assert_allclose(np.array(found, np.float32).T.reshape(expected.shape), expected, rtol=1e-6)


def test_loops_over_axes_are_for_arrays_of_as_many_axes():
    assert on_numbers(flat).axes is None
    assert on_numbers(nested).axes == 2


def shadowed_size(x: Any) -> Any:
    size = 2
    y = np.zeros_like(x)
    for i in range(size):
        y.flat[i] = x.flat[i]
    return y


def half(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.size // 2):
        y.flat[i] = x.flat[i]
    return y


def neighbour(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.size):
        y.flat[i] = x.flat[i - 1]
    return y


def numbered(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.size):
        y.flat[i] = i
    return y


def counted(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.size):
        y.flat[i] = x.flat[i] / x.size
    return y


def unwritten(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.size):
        if x.flat[i] > 0:
            y.flat[i] = x.flat[i]
    return y


def rounded(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.size):
        y.flat[i] = x.flat[i] / 3
        y.flat[i] += 1
    return y


def into_the_input(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.size):
        x.flat[i] = 0
        y.flat[i] = 1
    return y


def carried(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.size):
        if x.flat[i] > 0:
            last = x.flat[i]
        y.flat[i] = last
    return y


def transposed(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[j, i]
    return y


def other_axis(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.shape[1]):
        for j in range(x.shape[0]):
            y[i, j] = x[i, j]
    return y


def first_column(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i, 0] = x[i, 0]
    return y


def unknown(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.size):
        y.flat[i] = np.random.rand() * x.flat[i]
    return y


def given_back(x: Any) -> Any:
    for i in range(x.size):
        x.flat[i] = 0
    return x


def whole(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(x.size):
        y.flat[i] = np.sum(x)
    return y


BEYOND = [shadowed_size, half, neighbour, numbered, counted, unwritten, rounded, into_the_input, carried, transposed]
BEYOND += [other_axis, first_column, unknown, given_back, whole]


@pytest.mark.parametrize("function", BEYOND)
def test_loops_that_need_more_than_one_element_are_not(function: Any):
    assert on_numbers(function) is None
    line, text = stops_on_numbers(function)
    assert line > function.__code__.co_firstlineno
    assert text


def run_in(engine: str, function: Any, arrays: list[np.ndarray], **settings: Any) -> list[np.ndarray]:
    operator = app.custom_op(njit(function))
    with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()):
        given = [static.data(f"x{i}", [None, *array.shape[1:]]) for i, array in enumerate(arrays)]
        results = operator(*(x * 2 for x in given), **settings)
        fetch = list(results) if isinstance(results, (list, tuple)) else [results]
        feed = {f"x{i}": array for i, array in enumerate(arrays)}
        return static.Executor(engine=engine).run(feed=feed, fetch_list=fetch)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function", [flat, transposed, *(pytest.param(f, marks=pytest.mark.soak) for f in (zeroed, unwritten))]
)
def test_proven_or_not_both_engines_compute_the_same(function: Any):
    arrays = [np.random.default_rng(i).normal(size=(5, 5)).astype(np.float32) for i in range(2)]
    arrays = arrays[: function.__code__.co_argcount]
    if function is unwritten:
        arrays = [abs(array) for array in arrays]
    for found, expected in zip(
        run_in("compiled", function, arrays), run_in("reference", function, arrays), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_settings_are_numbers_in_a_loop():
    array = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    found, expected = (run_in(engine, series, [array], start=-1.0) for engine in ("compiled", "reference"))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)


def inverse(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.size):
        y.flat[i] = 1 / x.flat[i]
    return y


@pytest.mark.slow
def test_a_division_by_zero_in_a_loop_raises_as_it_does_in_a_function_of_numba():
    array = np.zeros((2, 2), np.float32)
    for engine in ("compiled", "compiled", "reference"):  # the second time, what compiling it has shown is known
        with pytest.raises(OperatorError, match=r"inverse.*ZeroDivisionError"):
            run_in(engine, inverse, [array])


@pytest.mark.slow
def test_a_division_by_zero_raises_even_where_compiling_the_function_was_seen_before():
    @njit
    def reciprocals(x: Any) -> Any:
        y = np.empty_like(x)
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i, 0]
            for j in range(x.shape[1]):
                y[i, j] = total / (x[i, j] - 2)
        return y

    for _ in range(2):
        with static.program_guard(static.Program(), static.Program()):
            out = app.custom_op(reciprocals, infer=lambda x: x)(static.data("x", [None, 2]) * 2)
            with pytest.raises(OperatorError, match="ZeroDivisionError"):
                static.Executor(engine="compiled").run(feed={"x": np.ones((2, 2), "float32")}, fetch_list=[out])


def test_the_shipped_relu_is_inlined():
    from app.custom.shelf.relu import relu_backward, relu_forward

    assert on_numbers(relu_forward) is not None
    assert on_numbers(relu_backward) is not None


def test_layers_that_use_one_function_share_what_is_made_of_it():
    function = njit(flat)
    first, second = (returning(function, (), None, False) for _ in range(2))
    assert first is second  # so that a compiler sees that the layers are alike
