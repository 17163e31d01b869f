"""`gradgradcheck`, and what `gradcheck` asks of backward passes beside the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import data, layer

import app
from app.autograd import Function, gradcheck, gradgradcheck
from app.errors import GradcheckError, GradientError, OperatorError


def saving(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    return x * x


def slope(ctx: Any, dy: Any) -> Any:
    return 2.0 * ctx.saved_tensor()[0] * dy


def slope_of_numbers(ctx: Any, dy: Any) -> Any:
    return app.to_tensor(2.0 * ctx.saved_tensor()[0].numpy()) * dy


# --- Gradients of gradients ---


@pytest.mark.parametrize("function", [app.tanh, app.square, lambda x: x * x * x, layer(saving, slope).apply])
def test_right_second_derivatives_pass(function: Any):
    assert gradgradcheck(function, data(0.3, -1.2)) is True


def test_of_several_inputs_and_outputs():
    assert gradgradcheck(lambda x, y: (x * y, app.sin(x @ y)), [data([0.5, 2.0], [1.0, 0.1]), data([1.0, 0.3], [2, 1])])
    assert gradgradcheck(lambda x, n: x**n, [data(0.5, 2.0), 3])
    assert gradgradcheck(lambda x, y: x * x, [data(0.5), data(2.0)])


def test_a_second_derivative_that_is_left_out_is_found():
    function = layer(saving, slope_of_numbers).apply
    assert gradcheck(function, data(0.3, -1.2))
    with pytest.raises(GradcheckError, match="the gradient of input 0 is wrong in 2 of 2 elements"):
        gradgradcheck(function, data(0.3, -1.2))
    assert gradgradcheck(function, data(0.3, -1.2), raise_exception=False) is False


def test_starts_can_be_given():
    seen: list[Any] = []
    function = layer(lambda ctx, x: x * 2.0, lambda ctx, dy: (seen.append(dy.tolist()), dy * 2.0)[1]).apply
    assert gradgradcheck(function, data(1.0, 2.0), data(0.5, 4.0))
    assert [0.5, 4.0] in seen


# --- What gradcheck asks beside the numbers ---


def test_inputs_that_are_no_tensors_are_passed_on():
    assert gradcheck(lambda x, n, none: x**n, [data(0.5, 2.0), 3, None])
    assert gradcheck(lambda x, xs: x * xs[1], [data(0.5), [1.0, 2.0]])


def test_each_output_is_derived_alone_too():
    def backward(ctx, first, second):
        return None if second is None or first is None else first * 2.0 + second * 3.0

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2.0, x * 3.0

    function = layer(forward, backward, Function).apply
    message = (
        "the gradient of input 0, with one output used at a time and no gradient for the others, is wrong in 1 of 1"
    )
    with pytest.raises(GradcheckError, match=message):
        gradcheck(function, data(1.0))
    assert gradcheck(function, data(1.0), raise_exception=False) is False
    assert gradcheck(function, data(1.0), check_undefined_grad=False)


def test_a_backward_that_cannot_do_with_one_gradient_shows_its_own_error():
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2.0, x * 3.0

    function = layer(forward, lambda ctx, a, b: a * 2.0 + b * 3.0).apply
    with pytest.raises(TypeError):
        gradcheck(function, data(1.0))


def test_a_backward_pass_must_give_the_same_again():
    random = np.random.default_rng(0)
    function = layer(lambda ctx, x: x * 1.0, lambda ctx, dy: dy * (1.0 + 1e-6 * random.random())).apply
    with pytest.raises(GradcheckError, match=r"is not reproducible \(Backward is not reentrant\)"):
        gradcheck(function, data(1.0))
    assert gradcheck(function, data(1.0), nondet_tol=1e-5)


def test_a_wide_step_makes_float32_do():
    x = data(0.5, -1.0, dtype="float32")
    with pytest.raises(OperatorError, match=r"input 0 is float32 \(which takes an eps of 3e-04 or more"):
        gradcheck(app.tanh, x)
    assert gradcheck(app.tanh, x, eps=1e-2, atol=1e-3, rtol=1e-2)


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, GradientError])
def test_nothing_to_check_is_an_error_in_any_case(kind: type[Exception]):
    with pytest.raises(kind, match="gradcheck needs an input with stop_gradient=False"):
        gradcheck(app.exp, data(1.0, stop_gradient=True), raise_exception=False)
