"""A PyLayer that returns or changes its inputs, in Paddle's and in PyTorch's manner, and contexts in depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import data, layer

import app
from app.autograd import Function, PyLayer


def identity(base: type) -> Any:
    return layer(lambda ctx, x: x, lambda ctx, dy: dy * 5.0, base)


# --- Inputs that are returned ---


def test_an_input_that_a_pylayer_returns_was_changed_in_place():
    x = data(1.0, 2.0)
    y = x * 2.0
    squared = y**2
    z = identity(PyLayer).apply(y)
    assert z is y
    assert y.inplace_version == 1
    z.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]
    with pytest.raises(RuntimeError, match="received tensor_version:1 != wrapper_version_snapshot:0"):
        squared.backward()
    with pytest.raises(ValueError, match="a leaf Tensor with stop_gradient=False"):
        identity(PyLayer).apply(data(1.0))


def test_an_input_that_a_function_returns_is_a_result_of_its_own():
    x = data(1.0)
    y = identity(Function).apply(x)
    assert y is not x
    y.backward()
    assert (x.grad.tolist(), x.inplace_version) == ([5.0], 0)


def test_what_a_function_marks_as_dirty_is_changed_in_place():
    def forward(ctx, x):
        x.add_(app.ones([1], "float64"))
        ctx.mark_dirty(x)
        return x

    cus = layer(forward, lambda ctx, dy: dy * 5.0, Function)
    x = data(1.0)
    y = x * 2.0
    assert cus.apply(y) is y
    y.backward()
    assert (y.tolist(), x.grad.tolist()) == ([3.0], [10.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        cus.apply(data(1.0))
    wrong = layer(lambda ctx, x: (ctx.mark_dirty(x), x * 1.0)[1], lambda ctx, dy: dy, Function)
    with pytest.raises(RuntimeError, match="marked as dirty was not returned"):
        wrong.apply(x * 1.0)


# --- Contexts ---


@pytest.mark.parametrize("consistent", [True, False])
def test_gradients_come_in_the_type_of_the_output_unless_told_otherwise(consistent: bool):
    seen: list[str] = []

    def forward(ctx, x):
        ctx.set_grad_in_dtype_consistent(consistent)
        return x * 1.0

    lower = layer(forward, lambda ctx, dy: (seen.append(dy.dtype), dy)[1], PyLayer)
    upper = layer(lambda ctx, x: x * 1.0, lambda ctx, dy: dy.astype("float16"), PyLayer)
    x = data(1.0)
    upper.apply(lower.apply(x)).backward()
    assert seen == ["float64" if consistent else "float16"]
    assert x.grad.dtype == "float64"


def test_a_backward_pass_inside_a_backward():
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
