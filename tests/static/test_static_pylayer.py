"""`static.nn.static_pylayer`: a function over Tensors, and one for its gradient, as an operator of a Program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import OperatorError

FEED = {"x": np.array([1, -2], "float32")}


def data(wants_gradient: bool = True) -> Any:
    x = static.data("x", [2])
    x.stop_gradient = not wants_gradient
    return x


def test_the_function_and_its_gradient_run_when_the_program_does():
    x = data()
    y = static.nn.static_pylayer(lambda a: 3 * a, [x], lambda dy: app.tanh(dy))
    static.append_backward(app.sum(y), [x])
    out, gradient = static.Executor().run(feed=FEED, fetch_list=[y, x.grad_name])
    np.testing.assert_allclose(out, [3, -6])
    np.testing.assert_allclose(gradient, np.tanh([1, 1]), rtol=1e-6)


def test_several_inputs_have_several_results_and_gradients():
    x, z = data(), static.create_parameter([2], default_initializer=app.nn.initializer.Constant(2.0))
    total, product = static.nn.static_pylayer(lambda a, b: (a + b, a * b), [x, z], lambda ds, dp: (ds, dp * 5.0))
    pairs = static.append_backward(app.sum(total) + app.sum(product), [x, z])
    executor = static.Executor()
    executor.run(static.default_startup_program())
    found = executor.run(feed=FEED, fetch_list=[total, product, *(gradient for _, gradient in pairs)])
    assert [value.tolist() for value in found] == [[3, 0], [2, -4], [1, 1], [5, 5]]


def test_inputs_may_not_want_gradients_of_a_function_without_one():
    y = static.nn.static_pylayer(lambda a: -a, [data(wants_gradient=False)])
    assert static.Executor().run(feed=FEED, fetch_list=[y])[0].tolist() == [-1, 2]
    with static.program_guard(static.Program()):
        with pytest.raises(ValueError, match="all inputs must have stop_gradient=True; x has not") as caught:
            static.nn.static_pylayer(lambda a: -a, [data()])
        assert isinstance(caught.value, OperatorError)
