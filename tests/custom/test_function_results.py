"""What a `Function` may take and return beside Tensors: nothing, numbers, None, words, and the same thing twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import data, layer

import app
from app.autograd import Function, gradcheck, gradgradcheck, once_differentiable
from app.errors import OperatorError


class Mixed(Function):
    """Two Tensors and an input among other things; `seen` learns what backward got."""

    seen: Any = None

    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.scale = scale
        ctx.save_for_backward(a, b)
        return scale, a * b * scale, None, "word", [a], (a + b) * scale, a

    @staticmethod
    def backward(ctx, *gradients):
        Mixed.seen = gradients
        a, b = ctx.saved_tensors
        product, total, same = gradients[1] * ctx.scale, gradients[5] * ctx.scale, gradients[6]
        return product * b + total + same, product * a + total, None


# --- Results that are no Tensors ---


def test_results_keep_their_places():
    a, b = data(1.0, 2.0), data(3.0, 4.0)
    scale, product, none, word, inner, total, same = Mixed.apply(a, b, 5)
    assert (scale, none, word) == (5, None, "word")
    assert inner[0] is a
    assert same is not a
    assert (product.tolist(), total.tolist()) == ([15, 40], [20, 30])


def test_backward_gets_none_for_what_is_no_tensor():
    a, b = data(1.0, 2.0), data(3.0, 4.0)
    results = Mixed.apply(a, b, 5)
    (results[1] + 2.0 * results[5] + 3.0 * results[6]).sum().backward()
    assert [g is None for g in Mixed.seen] == [True, False, True, True, True, False, False]
    assert a.grad.tolist() == [15 + 10 + 3, 20 + 10 + 3]
    assert b.grad.tolist() == [5 + 10, 10 + 10]


def test_its_gradients_can_be_derived_again():
    def chosen(a: app.Tensor, b: app.Tensor) -> Any:
        results = Mixed.apply(a, b, 3)
        return results[1], results[5], results[6]

    points = data(0.5, -1.0), data(2.0, 0.25)
    assert gradcheck(chosen, points)
    assert gradgradcheck(chosen, points)


def test_a_forward_that_returns_no_tensor_has_no_gradient():
    for result in (2, (2, "many")):
        assert layer(lambda ctx, x, result=result: result, None, Function).apply(data(1.0, 2.0)) == result


def test_a_result_that_is_returned_twice_is_one_tensor():
    twice = layer(lambda ctx, x: (x * 2.0,) * 2, lambda ctx, a, b: a * 2.0 + b * 2.0, Function)

    def total(x: app.Tensor) -> app.Tensor:
        a, b = twice.apply(x)
        assert a is b
        return a + b

    assert gradcheck(total, data(0.5, 2.0))
    assert gradgradcheck(total, data(0.5, 2.0))


def test_a_pylayer_gets_the_gradients_of_its_tensors_alone():
    """As in Paddle, where it must have a Tensor among its arguments and its results as well."""

    cus = layer(lambda ctx, x: (x * 2.0, None, 3), lambda ctx, dy: dy * 2.0)
    x = data(1.0)
    cus.apply(x)[0].backward()
    assert x.grad.tolist() == [2.0]
    with pytest.raises(OperatorError, match="at least one argument of apply must be a Tensor"):
        cus.apply(3)


# --- Arguments without a Tensor ---


def test_apply_without_a_tensor_runs_forward():
    class Plain(Function):
        @staticmethod
        def forward(ctx, a, b):
            assert ctx.needs_input_grad == (False, False)
            assert not app.is_grad_enabled()
            ctx.save_for_backward()
            return a + b, None, "word"

    assert Plain.apply(1, 2) == (3, None, "word")
    assert app.is_grad_enabled()


def test_tensors_that_it_makes_want_no_gradient():
    made = layer(lambda ctx, count: app.ones([count]), None, Function).apply(3)
    assert made.tolist() == [1, 1, 1]
    assert made.stop_gradient
    assert made.is_leaf


# --- setup_context ---


class Power(Function):
    @staticmethod
    def forward(x, exponent=3, *, scale=1.0):
        return scale * x**exponent

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.exponent, ctx.scale = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * ctx.scale * ctx.exponent * x ** (ctx.exponent - 1), None, None


@pytest.mark.parametrize(
    ("arguments", "named", "slope"),
    [((), {}, 12), ((2,), {}, 4), ((), {"exponent": 2}, 4), ((), {"scale": 10.0}, 120), ((2,), {"scale": 10.0}, 40)],
)
def test_setup_context_gets_the_defaults_too(arguments: Any, named: dict[str, Any], slope: float):
    x = data(2.0)
    Power.apply(x, *arguments, **named).backward()
    assert x.grad.tolist() == [slope]


def test_setup_context_sees_results_that_are_no_tensors():
    class Square(Function):
        @staticmethod
        def forward(x):
            return x * x, 2.0 * x.item()

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.slope = output

        @staticmethod
        @once_differentiable
        def backward(ctx, dy, nothing):
            assert nothing is None
            return dy * ctx.slope

    x = data(3.0)
    Square.apply(x)[0].backward()
    np.testing.assert_array_equal(x.grad.numpy(), [6.0])
