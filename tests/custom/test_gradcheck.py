"""`gradcheck` and `gradgradcheck`: right and wrong gradients, kinks, and functions that cannot be checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layers import data, layer

import app
from app import custom_op, static
from app.autograd import Function, gradcheck, gradgradcheck
from app.custom.gradcheck import JUMP, KINK, SMOOTH, kind_at
from app.errors import GradcheckError, GradientError, OperatorError


def wrong(backward: Any, forward: Any = lambda x: x * x, **options: Any) -> Any:
    operator = custom_op(forward, name="wrong", **options)
    operator.backward(backward)
    return operator


def saving(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    return x * x


def slope(ctx: Any, dy: Any) -> Any:
    return 2.0 * ctx.saved_tensor()[0] * dy


def times(x: Any, w: Any) -> Any:
    return x * w


def without_zeros(ctx: Any, x: Any) -> Any:
    ctx.set_materialize_grads(False)
    return x * 2.0, x * 3.0


# --- Right gradients ---

TWO = [data([0.5, -1.0], [2.0, 0.1]), data([0.3], [0.4])]
RIGHT = [
    (gradcheck, lambda x, y: app.tanh(x @ y), TWO),
    (gradcheck, app.exp, data(1.0, 2.0)),
    (gradcheck, app.exp, data(1.0, 200.0)),  # beside exp(200), no difference of another element counts
    (gradcheck, lambda x: (x * x).sum(), data(1.0, 3000.0)),  # whose rounding error is larger than the tolerance
    (gradcheck, lambda x: [app.sin(x), app.cos(x)], [data(0.5)]),
    (gradcheck, lambda a, b: a * b, [data(2.0)] * 2),
    (gradcheck, lambda x, xs, none: x * xs[1], [data(0.5), [1.0, 2.0], None]),
    (gradcheck, wrong(lambda x, w, dy: (dy * w, w * 99), times), [data(2.0), data(3.0, stop_gradient=True)]),
    (gradcheck, lambda x, index: app.gather(x, index), [data(2.0, 3.0), app.to_tensor([1, 1, 0])]),
    (gradcheck, lambda x: (x * x, (x * 3).detach()), data(2.0)),
    (gradcheck, lambda x, s: x * s, [data(2.0), data(3.0, dtype="float32", stop_gradient=True)]),
    (gradgradcheck, app.tanh, data(0.3, -1.2)),
    (gradgradcheck, layer(saving, slope).apply, data(0.3, -1.2)),
    (gradgradcheck, lambda x, y: (x * x[0], app.sin(x @ y)), TWO),
    (gradgradcheck, lambda x, n: x**n, [data(0.5, 2.0), 3]),
]


@pytest.mark.parametrize(("check", "function", "inputs"), RIGHT)
def test_right_gradients_and_second_derivatives_pass(check: Any, function: Any, inputs: Any):
    assert check(function, inputs) is True


def test_second_derivatives_can_start_from_given_gradients():
    seen: list[Any] = []
    function = layer(lambda ctx, x: x * 2.0, lambda ctx, dy: (seen.append(dy.tolist()), dy * 2.0)[1]).apply
    assert gradgradcheck(function, data(1.0, 2.0), data(0.5, 4.0))
    assert [0.5, 4.0] in seen


def test_tolerances_and_steps_can_be_chosen():
    slightly = wrong(lambda x, dy: 2 * x * dy * 1.001)
    assert gradcheck(slightly, [data(1.0)], rtol=1e-2)
    assert not gradcheck(slightly, [data(1.0)], rtol=1e-5, raise_exception=False)
    assert gradcheck(slightly, [data(1.0)], rtol=0, atol=1e-2)
    x = data(0.5, -1.0, dtype="float32")
    with pytest.raises(OperatorError, match=r"input 0 is float32 \(which takes an eps of 3e-04 or more"):
        gradcheck(app.tanh, x)
    assert gradcheck(app.tanh, x, eps=1e-2, atol=1e-3, rtol=1e-2)


# --- Wrong gradients ---


def test_the_error_names_the_worst_element_with_both_values():
    operator = wrong(lambda x, dy: dy * (2 * x + np.array([[0, 0.5, 0], [0, 0, 3.0]])))
    message = (
        r"the gradient of input 0 is wrong in 2 of 6 elements; worst at \[1, 2\]: "
        r"backward gives \d+\.\d+, finite differences give \d+\.\d+"
    )
    with pytest.raises(OperatorError, match=message) as caught:
        gradcheck(operator, [data([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])])
    backward, _, numeric = str(caught.value).partition("gives ")[2].partition(", finite differences give ")
    assert float(backward) == pytest.approx(float(numeric) * 5 / 2, rel=1e-5)


WRONG = [
    (
        wrong(lambda x, w, dy: (dy * w, dy * w), times),
        [data(2.0), data(3.0)],
        "gradient of input 1 is wrong",
    ),
    (
        wrong(lambda x, da, db: 2 * da + 3 * db, lambda x: (3 * x, 2 * x), outputs=("a", "b")),
        data(1.0, 2.0),
        "wrong in",
    ),
    (lambda x: static.py_func(lambda a: a * a, x, static.InputSpec.from_tensor(x)), data(2.0), "backward gives 0"),
    (lambda x: (x * x).detach() + x * 0.0, data(2.0), "backward gives 0"),
    (wrong(lambda x, dy: dy * np.where(x > 1.5, np.nan, 2 * x)), data(1.0, 2.0), r"worst at \[1\]: backward gives nan"),
    (wrong(lambda x, dy: dy * np.where(x > 1.5, np.inf, 2 * x)), data(1.0, 2.0), r"worst at \[1\]: backward gives inf"),
    (wrong(lambda x, dy: dy, lambda x: x * np.where(x > 1.5, np.nan, 1.0)), data(1.0, 2.0), "differences give nan"),
]


@pytest.mark.parametrize(("function", "inputs", "message"), WRONG)
def test_a_wrong_gradient_is_an_error(function: Any, inputs: Any, message: str):
    with pytest.raises(GradcheckError, match=message):
        gradcheck(function, inputs)
    assert gradcheck(function, inputs, raise_exception=False) is False


def test_a_missing_second_derivative_is_an_error():
    function = layer(saving, lambda ctx, dy: app.to_tensor(2.0 * ctx.saved_tensor()[0].numpy()) * dy).apply
    assert gradcheck(function, data(0.3, -1.2))
    with pytest.raises(GradcheckError, match="the gradient of input 0 is wrong in 2 of 2 elements"):
        gradgradcheck(function, data(0.3, -1.2))
    assert gradgradcheck(function, data(0.3, -1.2), raise_exception=False) is False


def test_each_output_is_also_differentiated_alone():
    def backward(ctx, first, second):
        return None if second is None or first is None else first * 2.0 + second * 3.0

    function = layer(without_zeros, backward, Function).apply
    message = "input 0, with one output used at a time and no gradient for the others, is wrong in 1 of 1"
    with pytest.raises(GradcheckError, match=message):
        gradcheck(function, data(1.0))
    assert gradcheck(function, data(1.0), check_undefined_grad=False)


def test_an_error_of_backward_with_one_gradient_passes_unchanged():
    function = layer(without_zeros, lambda ctx, a, b: a * 2.0 + b * 3.0).apply
    with pytest.raises(TypeError):
        gradcheck(function, data(1.0))


def test_a_backward_that_is_not_reproducible_is_an_error():
    random = np.random.default_rng(0)
    function = layer(lambda ctx, x: x * 1.0, lambda ctx, dy: dy * (1.0 + 1e-6 * random.random())).apply
    with pytest.raises(GradcheckError, match=r"is not reproducible \(Backward is not reentrant\)"):
        gradcheck(function, data(1.0))
    assert gradcheck(function, data(1.0), nondet_tol=1e-5)


# --- What cannot be checked ---

NOTHING = "gradcheck needs an input with stop_gradient=False"
FLOATS = "needs a function that returns Tensors of floats"
SINGLE = "gradcheck needs float64 to tell rounding from mistakes; input 1 is float32"


@pytest.mark.parametrize(
    ("function", "inputs", "kinds", "message"),
    [
        (app.exp, data(1.0, stop_gradient=True), [ValueError, RuntimeError, GradientError], NOTHING),
        (lambda x: 3, data(1.0), [OperatorError], FLOATS + ", found int"),
        (app.argmax, data(1.0), [OperatorError], FLOATS),
        (lambda x, y: x, [data(1.0), data(1.0, dtype="float32")], [OperatorError], SINGLE),
    ],
)
def test_a_function_that_cannot_be_checked_is_an_error_even_without_raise_exception(
    function: Any, inputs: Any, kinds: list[type[Exception]], message: str
):
    for kind in kinds:
        with pytest.raises(kind, match=message):
            gradcheck(function, inputs, raise_exception=False)


def test_inputs_are_unchanged_even_after_an_exception():
    x = data(1.0, 2.0)
    calls: list[int] = []

    def fails_later(x: app.Tensor) -> app.Tensor:
        calls.append(1)
        if len(calls) == 4:
            raise KeyError
        return x * x

    with pytest.raises(KeyError):
        gradcheck(fails_later, [x])
    assert x.tolist() == [1, 2]
    assert gradcheck(app.square, [x])
    assert gradgradcheck(app.square, [x])
    assert x.tolist() == [1, 2]
    assert x.grad is None


# --- Kinks and jumps ---


def relu(x: float) -> float:
    return max(x, 0.0)


RANDOM = np.random.default_rng(0)
KINDS: list[tuple[Callable[[float], float], float, float, str]] = [
    *((relu, 0.0, between, KINK) for between in (0.0, 0.3, 1.0)),
    *((relu, 0.0, outside, SMOOTH) for outside in (-0.1, 1.1, 5.0, np.nan)),
    *((abs, 0.0, between, KINK) for between in (-1.0, 0.0, 1.0)),
    (relu, 5e-7, 1.0, KINK),  # within the step
    (relu, 5e-7, 0.5, SMOOTH),
    (np.floor, 2.0, 0.0, JUMP),
    (np.floor, 2.0, np.nan, SMOOTH),
    *((lambda x, height=height: 5 * x + height * np.sign(x), 0.0, 5.0, JUMP) for height in (1e-3, 1.0, 1e3)),
    (lambda x: x + np.sign(x), 0.1, 2.0, SMOOTH),
    (np.cbrt, 0.0, 0.0, SMOOTH),
    *((curve, 0.5, 123.0, SMOOTH) for curve in (np.exp, np.sin, lambda x: 1e4 * x * x)),
    (lambda x: RANDOM.random(), 0.0, 0.0, SMOOTH),
]


@pytest.mark.parametrize(("function", "at", "gradient", "kind"), KINDS)
def test_a_gradient_may_lie_between_the_slopes_of_a_kink_and_anywhere_at_a_jump(
    function: Callable[[float], float], at: float, gradient: float, kind: str
):
    assert kind_at(lambda step: float(function(at + step)), gradient, 1e-6, 1e-6, 1e-5) == kind


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_gradcheck_takes_any_slope_at_the_kink_and_none_outside(slope: float):
    def relu_with(slope: float) -> Any:
        return wrong(lambda x, dy: dy * np.where(x == 0, slope, x > 0), lambda x: np.maximum(x, 0))

    assert gradcheck(relu_with(slope), data(0.0, 1.0, -1.0))
    with pytest.raises(GradcheckError, match=r"wrong in 1 of 3 elements; worst at \[0\]: backward gives .*"):
        gradcheck(relu_with(5.0 + slope), data(0.0, 1.0, -1.0))
