"""`autograd.Function`: the examples of PyTorch's documentation, and the rules that differ from a PyLayer's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from layers import data, layer

import app
from app.autograd import Function, gradcheck, gradgradcheck
from app.custom.shelf.legendre3 import legendre3
from app.errors import OperatorError


def test_the_example_of_the_documentation_prints_what_pytorch_prints():
    x = app.linspace(-math.pi, math.pi, 2000)
    y = app.sin(x)
    a, b, c, d = parameters = [app.full([], value) for value in (0.0, -1.0, 0.0, 0.3)]
    for parameter in parameters:
        parameter.stop_gradient = False
    losses = []
    for _ in range(200):
        loss = (a + b * legendre3.apply(c + d * x) - y).pow(2).sum()
        losses.append(loss.item())
        loss.backward()
        for parameter in parameters:
            with app.no_grad():
                parameter.subtract_(parameter.grad * 5e-6)
            parameter.grad = None
    assert losses[99] == pytest.approx(209.9583, rel=1e-5)
    assert losses[199] == pytest.approx(144.6602, rel=1e-5)
    assert a.is_leaf


# --- Gradients that backward returns ---


def test_gradients_of_inputs_that_need_none_are_ignored():
    matrix, row, x = app.ones([2, 3], "float64"), app.ones([4], "float64"), data(2.0)
    cus = layer(lambda ctx, m, r, x: x * 5.0, lambda ctx, dy: (app.zeros([2, 3]), app.zeros([4]), dy * 5.0), Function)
    cus.apply(matrix, row, x).backward()
    assert x.grad.item() == 5
    assert matrix.grad is None


@pytest.mark.parametrize(
    ("arguments", "gradients"),
    [
        ((2.0, "x"), lambda dy: (None, dy * 2)),
        (("x", 2.0, None), lambda dy: (dy * 2, None, None)),
        (("k", 2.0, "x", "m"), lambda dy: (None, None, dy * 2, None)),
        (("x",), lambda dy: (dy * 2, None)),  # an argument that has a default
        (("x", 2.0), lambda dy: dy * 2),
    ],
)
def test_gradients_may_be_returned_for_every_argument(arguments: Any, gradients: Callable[..., Any]):
    x = data(7.0)
    cus = layer(lambda ctx, *inputs: x * 2.0, lambda ctx, dy: gradients(dy), Function)
    cus.apply(*(x if a == "x" else a for a in arguments)).backward()
    assert x.grad.item() == 2


SHAPES = [
    ((3, 2), (2,), [3.0, 3.0]),
    ((2, 3), (2, 1), [[3.0], [3.0]]),
    ((3, 2), (), 6.0),
    ((1, 2), (2,), [1.0, 1.0]),
    *((returned, shape, None) for returned, shape in [((2,), (3, 2)), ((1,), (2,)), ((), (2,)), ((3,), (2,))]),
    ((2, 1), (2, 3), None),
]
"""The shape of a gradient and of its input, and the gradient summed to that shape; None where it cannot be."""


@pytest.mark.parametrize(("returned", "shape", "expected"), SHAPES)
def test_a_broadcast_gradient_is_summed_to_the_shape_of_the_input_and_others_are_errors(
    returned: Any, shape: Any, expected: Any
):
    f = layer(lambda ctx, x: x * 2.0, lambda ctx, dy: app.ones(returned, "float64") * dy.sum() / dy.sum(), Function)
    x = app.ones(shape, "float64")
    x.stop_gradient = False
    y = f.apply(x * x).sum()
    if expected is None:
        with pytest.raises(OperatorError, match=r"backward returned shape .* as gradient 0, but expected shape"):
            y.backward()
    else:
        (gradient,) = app.grad(y, x, create_graph=True)
        assert (gradient / 2.0).tolist() == expected


# --- Results and arguments that are not Tensors; setup_context ---


class Mixed(Function):
    """Two Tensors and two numbers with defaults, and results of which three are Tensors."""

    @staticmethod
    def forward(a, b, scale=3, *, shift=1.0):
        return scale, a * b * scale, None, "word", [a], (a + b) * scale * shift, a

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, ctx.scale, ctx.shift = inputs
        assert output[0] == ctx.scale
        ctx.save_for_backward(a, b)

    @staticmethod
    def backward(ctx, *gradients):
        assert [g is None for g in gradients] == [True, False, True, True, True, False, False]
        a, b = ctx.saved_tensors
        product, total, same = gradients[1] * ctx.scale, gradients[5] * ctx.scale * ctx.shift, gradients[6]
        return product * b + total + same, product * a + total, None, None


def test_results_that_are_not_tensors_keep_their_places():
    a, b = data(1.0, 2.0), data(3.0, 4.0)
    scale, product, none, word, inner, total, same = Mixed.apply(a, b, 5)
    assert (scale, none, word) == (5, None, "word")
    assert inner[0] is a
    assert same is not a
    assert (product.tolist(), total.tolist()) == ([15, 40], [20, 30])


LISTS = [
    (lambda ctx, x, xs: x + xs[0], "argument 1 of apply is a list .* pass each Tensor as an argument of its own"),
    (lambda ctx, x, xs: [x * 2.0, x], "forward returned a list, .* return a tuple"),
]


@pytest.mark.parametrize(("forward", "message"), LISTS)
def test_tensors_in_lists_are_errors_if_they_need_a_gradient_because_pytorch_gives_them_none(
    mode: Any, forward: Callable[..., Any], message: str
):
    cus = layer(forward, lambda ctx, *douts: None, Function)
    x, y = mode.input([1.0]), mode.input([2.0], "argument" not in message)
    with pytest.raises(OperatorError, match=message):
        cus.apply(x, [y])
    with app.no_grad():
        cus.apply(x, [y])
    cus.apply(mode.input([1.0], stop_gradient=True), [mode.input([2.0], stop_gradient=True)])


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        (lambda ctx, x: (x * 1.0,) * 2, [(5 + 7) * 3, 3, 3]),  # one result, whose gradient is that of the last place
        (lambda ctx, x: (x, x), [5 * 2 + 7 * 3, 2, 3]),  # two results, neither of which is the input
    ],
)
def test_what_is_returned_twice_has_the_gradients_that_pytorch_gives(mode: Any, forward: Any, expected: list[int]):
    x = mode.input([1.0])
    a, b = layer(forward, lambda ctx, a, b: a * 2.0 + b * 3.0, Function).apply(x)
    assert [mode.gradients(y, [x])[0].item() for y in (a * 5.0 + b * 7.0, a * 1.0, b * 1.0)] == expected


def one_result_twice(x: app.Tensor) -> app.Tensor:
    twice = layer(lambda ctx, x: (x * 2.0,) * 2, lambda ctx, a, b: a * 2.0 + b * 2.0, Function)
    a, b = twice.apply(x)
    assert a is b
    return a + b


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (Mixed.apply, [data(0.5, -1.0), data(2.0, 0.25)]),
        (lambda a, b: Mixed.apply(a, b, 2, shift=10.0), [data(0.5, -1.0), data(2.0, 0.25)]),
        (one_result_twice, [data(0.5, 2.0)]),
    ],
    ids=["defaults", "settings", "one result twice"],
)
def test_first_and_second_derivatives_agree_with_finite_differences(function: Any, inputs: Any):
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_a_forward_without_tensors_has_no_gradient():
    for result in (2, (2, "many")):
        assert layer(lambda ctx, x, result=result: result, None, Function).apply(data(1.0, 2.0)) == result
    tensor = layer(lambda ctx, count: app.ones([count]), None, Function).apply(3)
    assert (tensor.tolist(), tensor.stop_gradient, tensor.is_leaf) == ([1, 1, 1], True, True)
    seen: list[Any] = []

    def plain(ctx, a, b):
        seen.extend([ctx.needs_input_grad, app.is_grad_enabled()])
        ctx.save_for_backward()
        return a + b, None, "word"

    assert layer(plain, None, Function).apply(1, 2) == (3, None, "word")
    assert seen == [(False, False), False]
    assert app.is_grad_enabled()
