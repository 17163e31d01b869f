"""`autograd.Function`: PyTorch's spelling of a PyLayer, its listings, and where its manners differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layers import data, layer

import app
from app.autograd import Function
from app.errors import OperatorError


class MyExp(Function):
    @staticmethod
    def forward(ctx, inputs):
        outputs = inputs.exp()
        ctx.save_for_backward(outputs)
        return outputs

    @staticmethod
    def backward(ctx, grad_outputs):
        (outputs,) = ctx.saved_tensors
        return grad_outputs * outputs


class LegendrePolynomial3(Function):
    @staticmethod
    def forward(ctx, inputs):
        ctx.save_for_backward(inputs)
        return 0.5 * (5 * inputs**3 - 3 * inputs)

    @staticmethod
    def backward(ctx, grad_outputs):
        (inputs,) = ctx.saved_tensors
        return grad_outputs * 1.5 * (5 * inputs**2 - 1)


def test_example_1_of_the_document():
    inputs = app.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    outputs = MyExp.apply(inputs)
    outputs.backward(app.ones(outputs.shape))
    grad1 = inputs.grad
    inputs.grad = None
    outputs = inputs.exp()
    outputs.sum().backward()
    grad2 = inputs.grad
    np.testing.assert_array_equal(grad1.numpy(), grad2.numpy())


def test_example_2_of_the_document():
    x = app.linspace(-math.pi, math.pi, 2000)
    y = app.sin(x)
    a, b, c, d = (app.full([], value) for value in (0.0, -1.0, 0.0, 0.3))
    for parameter in (a, b, c, d):
        parameter.stop_gradient = False
    learning_rate = 5e-6
    P3 = LegendrePolynomial3.apply  # noqa: N806
    losses = []
    for _ in range(200):
        y_pred = a + b * P3(c + d * x)
        loss = (y_pred - y).pow(2).sum()
        losses.append(loss.item())
        loss.backward()
        with app.no_grad():
            a -= a.grad * learning_rate
            b -= b.grad * learning_rate
            c -= c.grad * learning_rate
            d -= d.grad * learning_rate
            a.grad, b.grad, c.grad, d.grad = None, None, None, None
    assert losses[99] == pytest.approx(209.9583, rel=1e-5)  # what PyTorch prints for the same listing
    assert losses[199] == pytest.approx(144.6602, rel=1e-5)
    assert a.is_leaf


def test_gradients_of_inputs_that_want_none_are_left_aside():
    matrix, row, x = app.ones([2, 3], "float64"), app.ones([4], "float64"), data(2.0)
    cus = layer(lambda ctx, m, r, x: x * 5.0, lambda ctx, dy: (app.zeros([2, 3]), app.zeros([4]), dy * 5.0), Function)
    cus.apply(matrix, row, x).backward()
    assert x.grad.item() == 5
    assert matrix.grad is None


@pytest.mark.parametrize(
    ("arguments", "gradients"),
    [
        ((2.0, "x"), lambda dy: (None, dy * 2)),
        (("x", 2.0), lambda dy: (dy * 2, None)),
        (("x", 2.0, None), lambda dy: (dy * 2, None, None)),
        (("k", 2.0, "x", "m"), lambda dy: (None, None, dy * 2, None)),
        (("x",), lambda dy: (dy * 2, None)),  # an argument that has a default
        (("x", 2.0), lambda dy: dy * 2),
    ],
)
def test_gradients_may_be_returned_for_every_argument(arguments: Any, gradients: Callable[..., Any]):
    x = data(7.0)
    cus = layer(lambda ctx, *given: x * 2.0, lambda ctx, dy: gradients(dy), Function)
    cus.apply(*(x if a == "x" else a for a in arguments)).backward()
    assert x.grad.item() == 2


def test_a_gradient_for_what_is_no_tensor_is_an_error():
    cus = layer(lambda ctx, x, k: x * k, lambda ctx, dy: (dy, dy), Function)
    with pytest.raises(OperatorError, match="backward returned 2 gradients, but forward had 1 Tensor as input"):
        cus.apply(data(1.0), 2.0).backward()


def test_needs_input_grad_lets_a_backward_save_work():
    computed: list[str] = []

    class Product(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx, dy):
            x, w = ctx.saved_tensors
            dx = dw = None
            if ctx.needs_input_grad[0]:
                computed.append("dx")
                dx = dy @ w.T
            if ctx.needs_input_grad[1]:
                computed.append("dw")
                dw = x.T @ dy
            return dx, dw

    x, w = app.ones([2, 3]), app.ones([3, 4])
    w.stop_gradient = False
    Product.apply(x, w).sum().backward()
    assert computed == ["dw"]
    np.testing.assert_array_equal(w.grad.numpy(), np.full((3, 4), 2))


@pytest.mark.parametrize(
    ("found", "shape", "expected"),
    [
        ((3, 2), (2,), [3.0, 3.0]),
        ((2, 3), (2, 1), [[3.0], [3.0]]),
        ((3, 2), (), 6.0),
        ((1, 2), (2,), [1.0, 1.0]),
    ],
)
def test_a_gradient_of_a_stretched_shape_is_summed_to_that_of_the_input(found: Any, shape: Any, expected: Any):
    f = layer(lambda ctx, x: x * 2.0, lambda ctx, dy: app.ones(found, "float64") * dy.sum() / dy.sum(), Function)
    x = app.ones(shape, "float64")
    x.stop_gradient = False
    (gradient,) = app.grad(f.apply(x * x).sum(), x, create_graph=True)
    assert (gradient / 2.0).tolist() == expected


@pytest.mark.parametrize(("found", "shape"), [((2,), (3, 2)), ((1,), (2,)), ((), (2,)), ((3,), (2,)), ((2, 1), (2, 3))])
def test_a_gradient_of_another_shape_is_refused(found: Any, shape: Any):
    f = layer(lambda ctx, x: x * 2.0, lambda ctx, dy: app.ones(found, "float64"), Function)
    x = app.ones(shape, "float64")
    x.stop_gradient = False
    with pytest.raises(OperatorError, match=r"backward returned shape .* as gradient 0, but expected shape"):
        f.apply(x).sum().backward()
