"""Derivatives of the gradient of a PyLayer, backwards that refuse them (`once_differentiable`), and memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layers import CusTanh, data, layer, run, variable

import app
from app import static
from app.autograd import Function, PyLayer, once_differentiable


class Cube(PyLayer):
    """Saves its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return 3.0 * x * x * dy


@pytest.mark.parametrize(
    ("cus", "derivatives"),
    [
        (Cube, [lambda x: 3 * x**2, lambda x: 6 * x, lambda x: 6 + 0 * x]),
        (
            CusTanh,  # saves its output
            [
                lambda x: 1 - np.tanh(x) ** 2,
                lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2),
                lambda x: (1 - np.tanh(x) ** 2) * (6 * np.tanh(x) ** 2 - 2),
            ],
        ),
    ],
)
@pytest.mark.parametrize("leaf", [True, False])
def test_a_backward_made_of_operators_can_be_differentiated_again(cus: Any, derivatives: Any, leaf: bool):
    start = data(0.3, -1.2)
    value = cus.apply(start if leaf else start * 1.0)
    for derivative in derivatives:
        (value,) = app.grad(value.sum(), start, create_graph=True)
        np.testing.assert_allclose(value.numpy(), derivative(start.numpy()), rtol=1e-12)


def identity(base: type[PyLayer], *marks: str) -> Any:
    """Saves its input, returns it, and multiplies the gradient by it."""

    def forward(ctx, x):
        for mark in marks:
            getattr(ctx, mark)(x)
        ctx.save_for_backward(x)
        return x

    return layer(forward, lambda ctx, dy: dy * ctx.saved_tensor()[0], base)


def second_on_tensors(function: Callable[[Any], Any], *numbers: float) -> np.ndarray:
    x = data(*numbers)
    (first,) = app.grad(function(x).sum(), x, create_graph=True)
    return app.grad(first.sum(), x)[0].numpy()


def second_in_a_program(function: Callable[[Any], Any], *numbers: float) -> np.ndarray:
    x = variable("x", len(numbers))
    (first,) = static.gradients(function(x), x)
    return run(*static.gradients(first, x), x=np.array(numbers, "float32"))[0]


@pytest.mark.parametrize(
    ("second", "cus", "expected"),
    [
        (second_on_tensors, identity(Function), [1, 1]),
        (second_in_a_program, identity(Function), [1, 1]),
        (second_on_tensors, identity(PyLayer, "mark_not_inplace"), [1, 1]),
        (second_in_a_program, identity(PyLayer, "mark_not_inplace"), [1, 1]),
        (second_on_tensors, identity(Function, "mark_dirty"), [0.5, 3]),
        (second_on_tensors, identity(PyLayer), [0.5, 3]),
        (second_in_a_program, identity(PyLayer), [0.5, 3]),
    ],
)
def test_a_saved_input_that_is_returned_is_the_result_only_if_it_counts_as_changed(
    second: Callable[..., np.ndarray], cus: Any, expected: list[float]
):
    np.testing.assert_array_equal(second(lambda x: cus.apply(x * 1.0), 0.5, 3.0), expected)


@pytest.mark.parametrize("second", [second_on_tensors, second_in_a_program])
@pytest.mark.parametrize("base", [PyLayer, Function])
@pytest.mark.parametrize("attribute", [True, False])
@pytest.mark.parametrize(("twice", "expected"), [(True, 6800), (False, 3200)])
def test_a_result_that_was_saved_and_is_returned_twice_or_has_no_gradient_is_differentiated_as_in_pytorch(
    second: Callable[..., np.ndarray], base: type[PyLayer], attribute: bool, twice: bool, expected: float
):
    def forward(ctx, x):
        square = x * x
        ctx.square = square if attribute else None
        ctx.save_for_backward(square)
        if twice:
            return square, square
        ctx.mark_non_differentiable(square)
        return square, x * 3.0

    def backward(ctx, da, db):
        square = ctx.square if attribute else ctx.saved_tensor()[0]
        return da * square + db * square * 10.0

    def function(x):
        a, b = layer(forward, backward, base).apply(x)
        return a + b * b

    np.testing.assert_array_equal(second(function, 2.0), [expected])


def test_forward_is_never_recorded_and_backward_only_for_create_graph():
    recorded: list[bool] = []

    def noted(ctx, x):
        recorded.append(app.is_grad_enabled())
        return x * 1.0

    x = data(1.0)
    y = layer(noted, noted).apply(x)
    app.grad(y, x, retain_graph=True)
    app.grad(y, x, create_graph=True)
    assert recorded == [False, False, True]


def test_a_backward_pass_runs_inside_a_backward():
    class Tanh(PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.inputs = x.detach()
            return x.tanh().mean()

        @staticmethod
        def backward(ctx, dy):
            with app.set_grad_enabled(True):
                inner = ctx.inputs
                inner.stop_gradient = False
                inner.tanh().mean().backward()
            assert not app.is_grad_enabled()
            return inner.grad * dy

    x = data(0.5, -0.25)
    Tanh.apply(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), (1 - np.tanh([0.5, -0.25]) ** 2) / 2)


# --- once_differentiable ---


def square(base: type[PyLayer]) -> Any:
    """x * x, whose backward works in NumPy."""

    class Square(base):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, dy):
            assert not app.is_grad_enabled()
            return app.to_tensor(2.0 * ctx.saved_tensor()[0].numpy() * dy.numpy())

    return Square


AGAIN = "operator Square .*: trying to differentiate twice a function that was marked with @once_differentiable"


@pytest.mark.parametrize("base", [PyLayer, Function])
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_second_derivative_of_a_once_differentiable_backward_is_an_error(base: type[PyLayer], create_graph: bool):
    x = data(3.0)
    (first,) = app.grad(square(base).apply(x), x, data(1.0), create_graph=create_graph)
    assert first.tolist() == [6.0]
    assert app.is_grad_enabled()
    if create_graph:
        with pytest.raises(RuntimeError, match=AGAIN):
            first.backward()


def test_a_once_differentiable_backward_is_an_error_also_through_a_saved_tensor():
    """PyTorch silently leaves this part out if only the derivative with respect to x is requested."""
    x = data(3.0)
    (first,) = app.grad(square(Function).apply(x * x), x, data(1.0), create_graph=True)
    assert first.tolist() == [108.0]
    with pytest.raises(RuntimeError, match=AGAIN):
        app.grad(first, x)


def test_a_second_derivative_that_does_not_depend_on_the_input_is_none():
    x = data(3.0)
    (first,) = app.grad(square(Function).apply(x), x, data(1.0, stop_gradient=True), create_graph=True)
    assert app.grad(first, x, allow_unused=True) == [None]


def test_once_differentiable_passes_none_and_several_gradients():
    def forward(ctx, x, k, w):
        ctx.k = k
        return x * k + w

    scale = layer(forward, once_differentiable(lambda ctx, dy: (dy * ctx.k, None, dy)), Function)
    x, w = data(1.0, 2.0), data(3.0, 4.0)
    dx, dw = app.grad(scale.apply(x, 2.0, w), [x, w], data(1.0, 1.0), create_graph=True)
    assert (dx.tolist(), dw.tolist()) == ([2, 2], [1, 1])
    with pytest.raises(RuntimeError, match="trying to differentiate twice"):
        app.grad(dw.sum(), x)


# --- Memory ---


@pytest.mark.parametrize("saved", ["input", "output", "attribute"])
@pytest.mark.parametrize("backward", [False, True])
def test_no_reference_cycle_keeps_results_alive(saved: str, backward: bool):
    def forward(ctx, x):
        y = app.tanh(x)
        ctx.k = 3
        if saved != "attribute":
            ctx.save_for_backward(x if saved == "input" else y)
        return y

    cus = layer(forward, lambda ctx, dy: dy * len(ctx.saved_tensor() or [1]))
    x = data(1.0, 2.0)
    gc.collect()
    gc.disable()
    try:
        y = cus.apply(x * 1.0)
        z = y * 2.0
        watched = [weakref.ref(y), weakref.ref(y._node), weakref.ref(z)]
        if backward:
            z.sum().backward()
        del y, z
        assert [w() for w in watched] == [None] * 3
    finally:
        gc.enable()
