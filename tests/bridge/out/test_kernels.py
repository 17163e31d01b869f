"""Kernels compute what the operator computes here: with Python's numbers where that does."""

from __future__ import annotations

import functools
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba import njit

import app
from app.bridge.out.description import spec_of_example
from app.bridge.out.translation import TORCH
from app.bridge.out.writing import EXPRESSIONS, KERNEL, Leaving, leaving, loaded
from app.errors import ExportError

pytestmark = pytest.mark.slow

X = np.array([[-3.0, -0.5, 0.0], [0.5, 2.0, 7.0]])


def written(operator: Any, *examples: Any) -> Leaving:
    return leaving(operator, list(map(spec_of_example, examples)), TORCH, ())


def module_of(one: Leaving) -> ModuleType:
    return loaded(
        f"import math\nimport numpy as np\nfrom numba import njit\n{one.constants}\n{one.functions}\n", "kernel"
    )


@functools.cache
def form_and_module_of(operator: Any) -> tuple[str, ModuleType]:
    """The same of an operator on numbers, once for all numbers: what it calls is compiled as a whole."""
    one = written(operator)
    return one.form, module_of(one)


def inverse_square(i):
    return i**-2


@njit
def compiled_square(i):
    return i * i


@app.custom_op(elementwise=True)
def summed(x, power=2):
    total, i = 0.0, 1
    while i < 4 and total < 100 * abs(x):
        total += x * i**-power
        i += 1
    return total


@app.custom_op
def weighted(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] * inverse_square(i + 1) * compiled_square(i + 1)
    return y


@app.custom_op(elementwise=True)
def halved(x):
    value = x
    while value > 1:
        value = np.clip(value, -2, 5) / 2
    return value * np.heaviside(x, 0.25)


@pytest.mark.parametrize("x", [-2.0, 0.5, 0.0])
def test_a_negative_power_of_an_integer_is_that_of_python(x: float) -> None:
    _, module = form_and_module_of(summed)
    assert module._forward(x, 2) == summed.function(x)


def test_a_function_in_python_stays_so_with_those_that_it_calls() -> None:
    module = module_of(written(weighted, X))
    np.testing.assert_array_equal(module._forward(X), X)
    assert (module._inverse_square(2), type(module._compiled_square)) == (0.25, type(compiled_square))


@pytest.mark.parametrize("x", [*X.ravel(), math.nan, math.inf])
def test_numpy_functions_that_numba_does_not_have_become_others(x: float) -> None:
    form, module = form_and_module_of(halved)
    assert form == KERNEL
    np.testing.assert_equal(module._forward(x), halved.function(np.float64(x)))


def test_clip_and_heaviside_are_expressions() -> None:
    @app.custom_op(elementwise=True)
    def one_by_one(x):
        return np.clip(x, -1, 2) * np.heaviside(x, 0.5) + np.clip(x, None, 0.5)

    @app.custom_op
    def whole(x):
        return np.clip(x, -1, 2) * x

    @app.custom_op
    def in_a_loop(x):
        y = np.empty_like(x)
        for i in range(x.size):
            y.flat[i] = np.clip(x.flat[i], -1, 2)
        return y

    assert [written(op, X).form for op in (one_by_one, whole, in_a_loop)] == [EXPRESSIONS] * 3


def test_what_numba_cannot_compile_is_refused_with_the_line() -> None:
    @app.custom_op(elementwise=True)
    def remainders(x):
        while x > 3:
            x = math.remainder(x, 4)
        return x

    with pytest.raises(ExportError, match=r"`while x > 3:`.*Numba cannot compile it: .*remainder"):
        written(remainders)


def test_a_helper_in_python_of_a_compiled_function_is_refused() -> None:
    @app.custom_op(elementwise=True)
    def halvings(x):
        while x > 1:
            x = x * inverse_square(2)
        return x

    with pytest.raises(ExportError, match="calls inverse_square, which is plain Python: put @njit above"):
        written(halvings)
