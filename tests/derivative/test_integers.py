"""Powers and products of integers, which Python and Numba compute differently."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from derivative.slopes_of_arrays import agrees

import app
from app import static
from app.derivative.arrays import derive
from app.derivative.powers import make_float_powers
from app.derivative.scope import UnderivableError


def of_numbers(x, n=4):
    scale = n
    scale **= -1
    for i in range(2**2):
        scale += 3**-i + pow(n, -i)
    return x * scale * 2**70 if 2**-n > 0 else x


def of_arrays(x, n=4):
    scale = 2**-n
    for i in range(x.shape[0]):
        scale += x.shape[1] ** -i + pow(n, -2) * 2**70
    return x * scale


def of_elements(x, n=4):
    y = np.empty_like(x)
    for i in range(x.size):
        y.flat[i] = x.flat[i] * n**-1
    return y


@pytest.mark.slow
@pytest.mark.parametrize("function", [of_numbers, of_arrays, of_elements])
def test_functions_and_their_derived_gradients_have_the_powers_of_python(function) -> None:
    operator = app.custom_op(function, elementwise=function is of_numbers)
    x = np.random.default_rng(0).uniform(0.5, 2, (2, 3))
    expected = np.vectorize(function)(x) if function is of_numbers else function(x)
    wants_gradient = function is not of_elements
    program = static.Program()
    with static.program_guard(program, static.Program()):
        data = static.data("x", [2, 3], "float64")
        data.stop_gradient = False
        fetched = [operator(data)]
        fetched += static.gradients(fetched, [data]) if wants_gradient else []
    slope = (function(2.0) - function(1.0)) if function is of_numbers else (function(x + 1) - function(x))
    for engine in ("reference", "compiled"):
        value, *gradient = static.Executor(engine=engine).run(program, feed={"x": x}, fetch_list=fetched)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        for one in gradient:
            np.testing.assert_allclose(one, np.broadcast_to(slope, x.shape), rtol=1e-9)


def of_an_array_of_ones(x, index):
    y = np.full(4, 1)
    y[1] = x[0] * 3
    return x * y / 2


def of_an_array_of_powers(x, index):
    y = index**2
    y[1] = x[0] * 3
    return x * y / 2


def of_an_array_of_numpys_powers(x, index):
    y = np.power(2, index)
    y[1] = x[0] * 3
    return x * y / 2


@pytest.mark.parametrize("function", [of_an_array_of_ones, of_an_array_of_powers, of_an_array_of_numpys_powers])
def test_an_array_of_integers_takes_no_fractions(function) -> None:
    assert agrees(function, np.array([0.7, 1.3, 0.4, 0.9]), np.array([2, 0, 3, 1]), orders=1)


@pytest.mark.parametrize(
    ("power", "text"),
    [
        ("n ** -1", "(1.0 * n) ** -1.0"),
        ("2 ** -n", "2.0 ** -n"),
        ("pow(n, m)", "pow(1.0 * n, m)"),
        ("2 ** 63", "2.0 ** 63"),
        ("k ** n", "(1.0 * k) ** n"),
        ("x.shape[0] ** -1", "(1.0 * x.shape[0]) ** -1.0"),
        ("y[0] ** -1", "y[0] ** -1.0"),
        ("(n / 2) ** -2", "(n / 2) ** -2.0"),
        ("int(x) ** n", "(1.0 * int(x)) ** n"),
        *((same, same) for same in ("n ** 2", "2 ** 62", "x ** n", "n ** x", "n ** 0.5")),
        *((same, same) for same in ("abs(x) ** n", "range(2 ** n)", "(-x if n else 1.0) ** n")),
    ],
)
def test_base_and_exponent_are_floats_where_numba_has_another_power(power: str, text: str) -> None:
    tree = ast.parse(f"def f(x, n, m=2):\n    y = x * 2\n    k = 0\n    k += n\n    return {power}").body[0]
    assert make_float_powers(tree, ["x"]) is (power != text)
    assert ast.dump(ast.parse(ast.unparse(tree.body[-1]))) == ast.dump(ast.parse(f"return {text}"))


def factorials(x):
    total = np.ones_like(x)
    product = 1
    for i in range(1, 30):
        product *= i
        total = total + x**i / product
    return total


def halves(x):
    y, step = x.copy(), 1
    while step < x.shape[0]:
        for i in range(x.shape[0] - step):
            y[i] = y[i] + y[i + step] / step
        step *= 2
    return y


def test_products_of_integers_that_grow_without_bound_are_refused() -> None:
    x = np.ones((4, 3))
    assert derive(halves, x).function(x, x).shape == x.shape
    with pytest.raises(UnderivableError, match=r"`product = product \* i` multiplies integers.* begin with a float"):
        derive(factorials, x)
