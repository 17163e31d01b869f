"""What is concluded from a function's source holds, and nothing is concluded where it might not."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from numba import njit

import app
from app import static
from app.custom.on_numbers import on_numbers

SLOPE = 0.1


def maximum(x: Any) -> Any:
    return np.maximum(x, np.float32(0))


def chosen(y: Any, dy: Any) -> Any:
    """A gradient."""
    low = SLOPE * dy
    return np.where(y > 0, dy, low)


def two(x: Any, y: Any) -> Any:
    return x * y, np.exp(-x) + np.pi


@pytest.mark.parametrize("function", [maximum, chosen, two, njit(maximum)])
def test_arithmetic_and_elementwise_functions_mean_the_same_for_numbers(function: Any):
    proven = on_numbers(function)
    assert proven is not None
    single = proven.function
    source = getattr(function, "py_func", function)
    arrays = [np.linspace(-2, 2, 9), np.linspace(1, -3, 9)][: source.__code__.co_argcount]
    expected = np.array(source(*arrays))
    found = np.array([single(*row) for row in zip(*arrays, strict=True)]).T
    np.testing.assert_allclose(found.reshape(expected.shape), expected)


def extremes(x: Any, y: Any) -> Any:
    return np.maximum(x, np.minimum(y, np.float32(2))), np.minimum(y, x)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_greater_of_two_numbers_is_numpys_with_zeros_infinities_and_what_is_not_a_number(kind: Any):
    edges = np.array([-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], kind)
    x, y = (grid.reshape(-1) for grid in np.meshgrid(edges, edges))
    single = njit(on_numbers(extremes).function)
    found = np.array([single(*pair) for pair in zip(x, y, strict=True)], kind).T
    np.testing.assert_array_equal(found, np.array(extremes(x, y)))


@njit
def decorated(x: Any) -> Any:
    return x * 2


def test_the_source_of_what_is_made_is_that_of_the_user():
    for function in (maximum, decorated):
        made = on_numbers(function).function
        assert inspect.getsource(made).strip().endswith(inspect.getsource(function).strip().splitlines()[-1].strip())


def summed(x: Any) -> Any:
    return x - np.sum(x)


def indexed(x: Any) -> Any:
    return x[::-1] * 2


def written(x: Any) -> Any:
    x += 1
    return x


def sorted_(x: Any) -> Any:
    return np.sort(x)


def by_keyword(x: Any) -> Any:
    return np.exp(x, out=x)


def constant(x: Any) -> Any:
    return 1.0


def branching(x: Any) -> Any:
    if x > 0:
        return x
    return -x


def product(x: Any, y: Any) -> Any:
    return x @ y


WHOLE = [summed, indexed, written, sorted_, by_keyword, constant, branching, product]


@pytest.mark.parametrize("function", WHOLE)
def test_what_looks_at_other_elements_or_at_the_array_is_left_as_it_is(function: Any):
    assert on_numbers(function) is None


def test_a_function_without_source_is_left_as_it_is():
    names: dict[str, Any] = {}
    exec("def f(x):\n    return x * 2", names)
    assert on_numbers(names["f"]) is None


def rows(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j]
            y[i, j] = v if v > 0 else SLOPE * v
    return y


def row_softmax(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(len(x)):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = np.exp(x[i, j] - top)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
    return y


def numbered(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i, 0] = i
    return y


def counted(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i, 0] = x[i, 0] / x.shape[0]
    return y


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        maximum,
        row_softmax,
        numbered,
        *(pytest.param(function, marks=pytest.mark.soak) for function in (*WHOLE[:2], rows, counted)),
    ],
)
def test_proven_or_not_the_compiled_engine_computes_the_same(function: Any):
    operator = app.custom_op(njit(function))
    array = np.random.default_rng(3).normal(size=(7, 5)).astype(np.float32)
    results = []
    for engine in ("compiled", "reference"):
        with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()):
            x = static.data("x", [None, 5])
            y = operator(app.tanh(x))
            results += static.Executor(engine=engine).run(feed={"x": array}, fetch_list=[y])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-6)
