"""`gradcheck` itself: it passes what is right, finds what is wrong, and refuses what it cannot judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import data

import app
from app import custom_op
from app.autograd import gradcheck
from app.errors import OperatorError


def wrong(backward: Any, forward: Any = lambda x: x * x, **options: Any) -> Any:
    operator = custom_op(forward, name="wrong", **options)
    operator.backward(backward)
    return operator


def test_right_gradients_pass():
    assert gradcheck(lambda x, y: app.tanh(x @ y), [data([0.5, -1.0], [2.0, 0.1]), data([0.3], [0.4])]) is True
    assert gradcheck(app.exp, data(1.0, 2.0))
    assert gradcheck(lambda x: [app.sin(x), app.cos(x)], [data(0.5)])


def test_the_worst_element_is_named_with_both_values():
    operator = wrong(lambda x, dy: dy * (2 * x + np.array([[0, 0.5, 0], [0, 0, 3.0]])))
    message = (
        r"the gradient of input 0 is wrong in 2 of 6 elements; worst at \[1, 2\]: "
        r"backward gives \d+\.\d+, finite differences give \d+\.\d+"
    )
    with pytest.raises(OperatorError, match=message) as caught:
        gradcheck(operator, [data([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])])
    backward, _, numeric = str(caught.value).partition("gives ")[2].partition(", finite differences give ")
    assert float(backward) == pytest.approx(float(numeric) * 5 / 2, rel=1e-5)


def test_the_input_that_is_wrong_is_named():
    operator = wrong(lambda x, w, dy: (dy * w, dy * w), lambda x, w: x * w)
    with pytest.raises(OperatorError, match="the gradient of input 1 is wrong in 1 of 1 elements"):
        gradcheck(operator, [data(2.0), data(3.0)])


def test_false_is_returned_where_no_exception_is_wanted():
    assert gradcheck(wrong(lambda x, dy: dy), [data(2.0)], raise_exception=False) is False
    assert gradcheck(app.square, [data(2.0)], raise_exception=False) is True


def test_gradients_that_are_exchanged_between_outputs_are_found():
    operator = wrong(lambda x, da, db: 2 * da + 3 * db, lambda x: (3 * x, 2 * x), outputs=("a", "b"))
    with pytest.raises(OperatorError, match="wrong in"):
        gradcheck(operator, [data(1.0, 2.0)])


def test_a_missing_gradient_is_found():
    with pytest.raises(OperatorError, match="backward gives 0"):
        gradcheck(custom_op(lambda x: x * x, name="opaque"), [data(2.0)])
    with pytest.raises(OperatorError, match="backward gives 0"):
        gradcheck(lambda x: (x * x).detach() + x * 0.0, [data(2.0)])


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_gradient_that_is_no_number_is_found(number: float):
    with pytest.raises(OperatorError, match=r"wrong in 1 of 2 elements; worst at \[1\]: backward gives (nan|inf)"):
        gradcheck(wrong(lambda x, dy: dy * np.where(x > 1.5, number, 2 * x)), [data(1.0, 2.0)])


def test_a_function_that_is_no_number_is_found():
    operator = wrong(lambda x, dy: dy, lambda x: x * np.where(x > 1.5, np.nan, 1.0))
    with pytest.raises(OperatorError, match=r"finite differences give nan"):
        gradcheck(operator, [data(1.0, 2.0)])


def test_float32_is_refused():
    with pytest.raises(
        OperatorError, match="gradcheck needs float64 to tell rounding from mistakes; input 1 is float32"
    ):
        gradcheck(lambda x, y: x, [data(1.0), data(1.0, dtype="float32")])


def test_inputs_with_stop_gradient_are_not_checked():
    operator = wrong(lambda x, w, dy: (dy * w, np.full_like(w, 99)), lambda x, w: x * w)
    assert gradcheck(operator, [data(2.0), data(3.0, stop_gradient=True)])
    assert gradcheck(lambda x, index: app.gather(x, index), [data(2.0, 3.0), app.to_tensor([1, 1, 0])])
    assert gradcheck(lambda x, s: x * s, [data(2.0), data(3.0, dtype="float32", stop_gradient=True)])


def test_there_must_be_something_to_check():
    with pytest.raises(OperatorError, match="gradcheck needs an input with stop_gradient=False"):
        gradcheck(app.exp, [data(1.0, stop_gradient=True)])
    with pytest.raises(OperatorError, match="needs a function that returns Tensors of floats, found int"):
        gradcheck(lambda x: 3, [data(1.0)])
    with pytest.raises(OperatorError, match="needs a function that returns Tensors of floats"):
        gradcheck(app.argmax, [data(1.0)])


def test_inputs_are_as_before_even_after_an_exception():
    x = data(1.0, 2.0)
    calls: list[int] = []

    def fails_later(x: app.Tensor) -> app.Tensor:
        calls.append(1)
        if len(calls) == 4:
            raise KeyError
        return x * x

    with pytest.raises(KeyError):
        gradcheck(fails_later, [x])
    np.testing.assert_array_equal(x.numpy(), [1, 2])
    assert gradcheck(app.square, [x])
    np.testing.assert_array_equal(x.numpy(), [1, 2])
    assert x.grad is None


def test_tolerances_can_be_chosen():
    slightly = wrong(lambda x, dy: 2 * x * dy * 1.001)
    assert gradcheck(slightly, [data(1.0)], rtol=1e-2)
    assert not gradcheck(slightly, [data(1.0)], rtol=1e-5, raise_exception=False)
    assert gradcheck(slightly, [data(1.0)], rtol=0, atol=1e-2)


def test_one_tensor_used_as_two_inputs():
    x = data(2.0)
    assert gradcheck(lambda a, b: a * b, [x, x])
