"""Values without axes, such as a loss or a learned number, are numbers for Numba and for derived gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from as_python import uncompiled
from numba import njit

import app

__all__ = ["uncompiled"]

pytestmark = pytest.mark.slow

X, A, B = np.random.default_rng(0).uniform(0.3, 1, 5), np.array(0.7), np.array(1.3)


def decayed(x):
    total = 0.0
    for i in range(x.shape[0]):
        total = total * 0.9 + x[i] * x[i]
    return total


def until_one(x):
    total = 0.0
    k = 0
    while total < 1.0 and k < x.shape[0]:
        total += x[k]
        k += 1
    return total * total


def product_of_large(x):
    product = 1.0
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            product *= x[i]
    return product


def ratio(x):
    total, largest = 0.0, 1.0
    for i in range(x.shape[0]):
        total += x[i]
        largest = max(largest, x[i])
    result = total / largest
    if result > 1:
        result = result * result
    return result


def scaled_sum(x, a):
    a = a.item()
    total = 0.0
    for i in range(x.shape[0]):
        total += a * x[i] * x[i]
        total *= math.cos(a)
    return total


def averaged(x, a, b):
    a = a.item()
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        a = a * 0.9 + b * x[i]
        y[i] = a * a / b
    return y


def of_numbers(a, b):
    return a * b * b


def whole(x, a):
    return x * a + a * a


def powered(x, n, a):
    n = n.item()
    total = 0.0
    for i in range(n):
        total = total * a + x[i] ** n
    return total


FUNCTIONS: list[tuple[Any, ...]] = [
    (decayed, X),
    (product_of_large, X),
    (scaled_sum, X, A),
    (of_numbers, A, B),
    (whole, X, A),
    (until_one, X),
    (ratio, X),
    (averaged, X, A, B),
    (powered, X, np.array(3), A),
]


def slopes(function: Any, arrays: list[np.ndarray], step: float = 1e-4) -> list[np.ndarray]:
    """The gradients of the sum of a function's results, by central differences."""

    def moved(place: int, index: tuple[int, ...], by: float) -> float:
        values = [a.copy() for a in arrays]
        values[place][index] += by
        return float(np.sum(function(*[v if v.ndim else v[()] for v in values])))

    return [
        np.array([moved(i, at, step) - moved(i, at, -step) for at in np.ndindex(a.shape)]).reshape(a.shape) / (2 * step)
        for i, a in enumerate(arrays)
        if a.dtype.kind == "f"
    ]


def gradients(operator: Any, arrays: list[np.ndarray], order: int) -> list[np.ndarray]:
    x = [app.to_tensor(a, stop_gradient=a.dtype.kind != "f") for a in arrays]
    floats = [t for t in x if not t.stop_gradient]
    result = operator(*x)
    for _ in range(order - 1):
        result = sum((g * g).sum() for g in app.grad(result.sum(), floats, create_graph=True))
    return [g.numpy() for g in app.grad(result.sum(), floats)]


def assert_right(operator: Any, arrays: list[np.ndarray]) -> None:
    """First and second derivatives agree with differences."""

    def squares(*values: Any) -> float:
        return sum(float(np.sum(g * g)) for g in slopes(operator.function, [np.asarray(v) for v in values]))

    for order, function, near in ((1, operator.function, 1e-6), (2, squares, 1e-3)):
        expected = slopes(function, arrays, 1e-4 if order == 1 else 1e-3)
        for gradient, difference in zip(gradients(operator, arrays, order), expected, strict=True):
            assert gradient.shape == difference.shape
            np.testing.assert_allclose(gradient, difference, rtol=near, atol=1e-6)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(("function", "arrays"), [(f, a) for f, *a in FUNCTIONS])
def test_gradients_of_losses_and_of_numbers_are_right_to_second_order(function, arrays):
    assert_right(app.custom_op(function), arrays)


@pytest.mark.parametrize(
    ("function", "arrays"),
    [pytest.param(f, a, marks=() if f is scaled_sum else pytest.mark.soak) for f, *a in FUNCTIONS],
)
def test_numba_compiles_them(function, arrays):
    assert_right(app.custom_op(njit(function)), arrays)


@pytest.mark.usefixtures("uncompiled")
def test_the_source_of_a_derived_gradient_can_be_declared_as_a_backward():
    operator = app.custom_op(njit(decayed))
    expected = gradients(operator, [X], 1)
    space = {"np": np}
    exec(operator.gradient_source, space)
    copied = app.custom_op(njit(decayed))
    copied.backward(njit(space["decayed_gradient"]))
    np.testing.assert_allclose(gradients(copied, [X], 1), expected)


def test_engines_agree_on_a_kernel_of_a_loss_and_a_number():
    operator = app.custom_op(njit(scaled_sum))
    program = app.static.Program()
    with app.static.program_guard(program, app.static.Program()):
        app.enable_static()
        try:
            x = app.static.data("x", [5], "float64")
            a = app.static.data("a", [], "float64")
            x.stop_gradient = a.stop_gradient = False
            loss = operator(x, a)
            fetched = [loss, *app.static.gradients([loss], [x, a])]
        finally:
            app.disable_static()
    results = [
        app.static.Executor(engine=engine).run(program, feed={"x": X, "a": A}, fetch_list=fetched)
        for engine in ("reference", "compiled")
    ]
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(results[0][1], slopes(scaled_sum, [X, A])[0], rtol=1e-6)


def test_gradcheck_does_not_blame_the_gradient_of_a_part_that_rounding_hides_in_a_large_sum():
    @app.custom_op
    def loss(x):
        return (np.maximum(x, 0.0) ** 2).sum()

    def slope_of(at: float, error: float = 0.0) -> bool:
        loss.backward(lambda x, dy: dy * (2 * np.maximum(x, 0.0) + error))
        x = app.to_tensor(np.array([0.004, at]), stop_gradient=False)
        return app.autograd.gradcheck(loss, x, raise_exception=False)

    assert slope_of(1.0)
    assert slope_of(1e6)
    assert not slope_of(5000.0, error=1.0)
    assert not slope_of(1.0, error=0.001)
