"""Second derivatives of custom operators: through a backward that is made of operators, else an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from as_python import uncompiled
from layers import CusTanh
from numba import njit

import app
from app import static
from app.autograd import gradgradcheck
from app.errors import OperatorError

__all__ = ["uncompiled"]

X = np.array([[-1.2, 0.4, 0.9], [2.0, -0.3, 0.1]])
W = np.array([[0.7, -1.1, 0.2], [0.5, 1.4, -0.6]])


@app.custom_op(elementwise=True)
def swish(x: Any, beta: float = 1.0) -> Any:
    return x / (1 + np.exp(-beta * x))


@swish.backward
def swish_grad(x: Any, dy: Any, beta: float) -> Any:
    s = 1 / (1 + np.exp(-beta * x))
    return dy * (s + beta * x * s * (1 - s))


@app.custom_op
def gated(x: Any, w: Any) -> Any:
    return np.tanh(x) * w


@gated.backward
def gated_grad(x: Any, w: Any, dy: Any) -> Any:
    t = app.tanh(x)
    return dy * w * (1 - t * t), dy * t


@njit
def cube(x: np.ndarray) -> np.ndarray:
    return x * x * x


@njit
def cube_grad(x: np.ndarray, y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return 3.0 * x * x * dy


def cubed(x: Any) -> Any:
    return static.py_func(cube, x, static.InputSpec(x.shape, x.dtype), cube_grad)


def twice_shifted(x: Any) -> Any:
    """A py_func whose backward gives no gradient for its second input."""
    first = static.py_func(
        lambda a, b: a * a + 0.0 * b,
        [x, x * 1.0],
        static.InputSpec(x.shape, x.dtype),
        lambda a, b, y, dy: (2.0 * a * dy, None),
    )
    return first * x


class Power(app.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, exponent: int) -> Any:
        ctx.save_for_backward(x, w)
        ctx.exponent = exponent
        return x**exponent * w, x + w

    @staticmethod
    def backward(ctx: Any, dy: Any, dz: Any) -> Any:
        x, w = ctx.saved_tensors
        n = ctx.exponent
        return dy * n * x ** (n - 1) * w + dz, dy * x**n + dz, None


def powered(x: Any, w: Any) -> Any:
    y, z = Power.apply(x, w, 3)
    return y * z


EACH = [
    (swish, [X]),
    (lambda x: swish(x, beta=1.7), [X]),
    (cubed, [X]),
    (twice_shifted, [X]),
    (lambda x: swish(CusTanh.apply(cubed(x))), [X]),
    (gated, [X, W]),
    (powered, [X, W]),
]


def second_of(function: Callable[..., Any], inputs: Sequence[Any], gradients: Any) -> list[Any]:
    """The gradients of the sum of squares of the gradients of the sum of squares."""
    first = gradients([app.sum(app.square(function(*inputs)))], inputs)
    return gradients([app.add_n([app.sum(app.square(g)) for g in first])], inputs)


def second_in_a_program(function: Callable[..., Any], arrays: list[Any], rows: int | None) -> list[Any]:
    with static.program_guard(static.Program(), static.Program()):
        inputs = [static.data(f"x{i}", [rows, 3], "float64") for i in range(len(arrays))]
        for variable in inputs:
            variable.stop_gradient = False
        fetched = second_of(function, inputs, static.gradients)
        feed = {f"x{i}": array for i, array in enumerate(arrays)}
        return static.Executor(engine="reference").run(feed=feed, fetch_list=fetched)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(("function", "arrays"), EACH)
def test_second_derivatives_agree_with_finite_differences_in_every_mode(
    function: Callable[..., Any], arrays: list[Any]
):
    inputs = [app.to_tensor(a, stop_gradient=False) for a in arrays]
    assert gradgradcheck(function, inputs)
    on_tensors = partial(second_of, function, gradients=partial(app.grad, create_graph=True))
    expected = [g.numpy() for g in on_tensors(inputs)]
    traced = app.jit.to_static(lambda *inputs: on_tensors(inputs), backend="reference")
    actual = [g.numpy() for g in traced(*inputs)]
    for values in (actual, *(second_in_a_program(function, arrays, rows) for rows in (2, None))):
        for value, right in zip(values, expected, strict=True):
            np.testing.assert_allclose(value, right, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("uncompiled")
def test_third_derivatives_are_right():
    x = app.to_tensor(X, stop_gradient=False)
    value = swish(x)
    for _ in range(3):
        (value,) = app.grad(value.sum(), x, create_graph=True)
    s, e = (a.numpy() for a in (app.sigmoid(x), x))
    third = s * (1 - s) * (3 - 6 * s + e * (1 - 6 * s + 6 * s * s))
    np.testing.assert_allclose(value.numpy(), third, rtol=1e-9)


# Opaque


def opaque_grad(x: Any, y: Any, dy: Any) -> Any:
    return np.ascontiguousarray(2.0 * x) * dy


@app.custom_op(elementwise=True)
def bent(x: Any) -> Any:
    return x * x if x > 0 else 0.0 * x


@bent.backward
def bent_grad(x: Any, dy: Any) -> Any:
    return 2.0 * x * dy if x > 0 else 0.0 * dy


def squared(x: Any) -> Any:
    return static.py_func(np.square, x, static.InputSpec(x.shape, x.dtype), opaque_grad)


@app.custom_op
def noisy(x: Any) -> Any:
    return x * 1.0


@noisy.backward
def noisy_grad(x: Any, dy: Any) -> Any:
    return dy * x * np.random.uniform(1, 2)


@pytest.mark.parametrize(
    ("function", "label"),
    [(squared, r"py_func\.square"), (bent, "bent"), (noisy, "noisy")],
)
def test_an_opaque_backward_is_an_error_that_names_the_operator(function: Any, label: str):
    message = rf"operator {label} \(test_second_derivatives\.py:\d+\) cannot be differentiated twice"
    with pytest.raises(OperatorError, match=message):
        second_in_a_program(function, [X], 2)
    x = app.to_tensor(X, stop_gradient=False)
    (first,) = app.grad(function(x).sum(), x, create_graph=True)
    with pytest.raises(OperatorError, match=message):
        first.sum().backward()


class TanhOfArrays(app.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = app.tanh(x)
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy * (1 - app.square(ctx.y))


@app.custom_op
def by_a_layer(x: Any) -> Any:
    return np.tanh(x)


@by_a_layer.backward
def _(x: Any, dy: Any) -> Any:
    return dy * (1 - TanhOfArrays.apply(x) ** 2)


def test_a_pylayer_in_the_backward_of_another_operator_is_differentiated_once():
    expected = second_in_a_program(app.tanh, [X], 2)
    np.testing.assert_allclose(second_in_a_program(by_a_layer, [X], 2), expected, rtol=1e-6)
    x = app.to_tensor(X, stop_gradient=False)
    (second,) = second_of(by_a_layer, [x], partial(app.grad, create_graph=True))
    np.testing.assert_allclose(second.numpy(), expected[0], rtol=1e-6)
    with pytest.raises(OperatorError, match=r"TanhOfArrays .*on Tensors, write that backward in a PyLayer"):
        second.sum().backward()


def test_the_derivative_of_a_constant_gradient_is_zero():
    @app.custom_op
    def double(x: Any) -> Any:
        return x * 2.0

    @double.backward
    def _(dy: Any) -> Any:
        return dy * 2.0

    x = app.to_tensor(X, stop_gradient=False)
    (first,) = app.grad(app.sum(double(x) * x), x, create_graph=True)
    (second,) = app.grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), np.full(X.shape, 4.0))
