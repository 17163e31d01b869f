"""`once_differentiable`: a backward that runs unrecorded, and whose results refuse to be differentiated again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import data

import app
from app.autograd import Function, PyLayer, once_differentiable


def square(base: type[PyLayer], seen: list[bool] | None = None) -> Any:
    """x * x, its backward computed once, in NumPy; `seen` learns whether it was recorded."""

    class Square(base):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, dy):
            if seen is not None:
                seen.append(app.is_grad_enabled())
            return app.to_tensor(2.0 * ctx.saved_tensor()[0].numpy() * dy.numpy())

    return Square


BASES = [PyLayer, Function]
AGAIN = "operator Square .*: trying to differentiate twice a function that was marked with @once_differentiable"


@pytest.mark.parametrize("create_graph", [False, True])
def test_it_is_never_recorded(create_graph: bool):
    seen: list[bool] = []
    x = data(3.0)
    app.grad(square(Function, seen).apply(x), x, data(1.0), create_graph=create_graph)
    assert seen == [False]
    assert app.is_grad_enabled()


@pytest.mark.parametrize("base", BASES)
def test_a_second_derivative_is_refused(base: type[PyLayer]):
    x, start = data(3.0), data(1.0)
    (first,) = app.grad(square(base).apply(x), x, start, create_graph=True)
    assert first.tolist() == [6.0]
    with pytest.raises(RuntimeError, match=AGAIN):
        first.backward()


def test_it_is_refused_where_the_way_leads_through_what_backward_saved():
    """PyTorch leaves this part of the derivative out, silently, if only that of x is asked for."""
    x = data(3.0)
    (first,) = app.grad(square(Function).apply(x * x), x, data(1.0), create_graph=True)
    assert first.tolist() == [108.0]
    with pytest.raises(RuntimeError, match=AGAIN):
        app.grad(first, x)


def test_nothing_is_refused_where_no_gradient_could_flow():
    x = data(3.0)
    (first,) = app.grad(square(Function).apply(x), x, data(1.0, stop_gradient=True), create_graph=True)
    assert app.grad(first, x, allow_unused=True) == [None]


def test_none_and_several_gradients_pass():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, k, w):
            ctx.k = k
            return x * k + w

        @staticmethod
        @once_differentiable
        def backward(ctx, dy):
            return dy * ctx.k, None, dy

    x, w = data(1.0, 2.0), data(3.0, 4.0)
    dx, dw = app.grad(Scale.apply(x, 2.0, w), [x, w], data(1.0, 1.0), create_graph=True)
    np.testing.assert_array_equal(dx.numpy(), [2, 2])
    np.testing.assert_array_equal(dw.numpy(), [1, 1])
    with pytest.raises(RuntimeError, match="trying to differentiate twice"):
        app.grad(dw.sum(), x)
