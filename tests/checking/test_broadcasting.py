"""What the check of broadcasting says of operators of several inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app.checking.checks.shapes import broadcasting
from app.checking.finding import found
from app.checking.subject import Input, Result, Subject
from app.checking.verdict import FAILED, NOTE, OK
from app.custom import custom_op


def verdicts(operator: Any, count: int = 2) -> list[tuple[str, str]]:
    inputs = tuple(Input(name, (4, 6)) for name in "xgw"[:count])
    return [(v.state, v.words) for v in broadcasting(Subject(found(operator, "it"), inputs))]


def product(grad_of_g: Callable[..., Any]) -> Any:
    """x * g, with a right gradient of x and this one of g."""

    @custom_op(infer=lambda x, g: np.broadcast_shapes(tuple(x.shape), tuple(g.shape)))
    def scaled(x, g):
        return x * g

    @scaled.backward
    def _(x, g, dy):
        return summed(dy * g, x), grad_of_g(dy * x, g)

    return scaled


def summed(gradient: np.ndarray, one: np.ndarray) -> np.ndarray:
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - one.ndim)))
    return gradient.sum(axis=tuple(a for a, s in enumerate(one.shape) if s == 1), keepdims=True)


GOOD = [(OK, "inputs are broadcast, and gradients summed back to their shapes")]


@pytest.mark.parametrize(("operator", "count"), [(app.multiply, 2), (app.where, 3), (product(summed), 2)])
def test_results_and_gradients_as_of_expanded_inputs_are_right(operator: Any, count: int):
    assert verdicts(operator, count) == GOOD


def test_a_gradient_that_is_not_summed_fails():
    first = product(lambda gradient, one: np.resize(gradient, one.shape))
    assert verdicts(first) == [(FAILED, "[4, 6] with [6]: the gradient of g is not summed over the broadcast axes")]


def test_a_gradient_that_raises_fails():
    ((state, words),) = verdicts(product(lambda gradient, one: gradient))
    assert state == FAILED
    assert words.startswith("[4, 6] with [6]: the gradient fails: ")


def test_a_result_of_one_input_alone_has_the_wrong_shape():
    assert verdicts(custom_op(lambda x, g: x * 2, name="first")) == [
        (FAILED, "[4, 1] with [1, 6]: it gives shape [4, 1], expected [4, 6]")
    ]


def test_other_numbers_than_for_expanded_inputs_fail():
    sized = custom_op(lambda x, g: x * g * g.size, name="sized")
    assert verdicts(sized) == [(FAILED, "[4, 6] with [6]: it gives other numbers than for expanded inputs")]


def refuses(x, g):
    if x.shape != g.shape:
        raise ValueError("two shapes")
    return x * g


def test_that_inputs_are_not_broadcast_is_a_note():
    ((state, words),) = verdicts(custom_op(refuses))
    assert state == NOTE
    assert words.startswith("inputs are not broadcast: [4, 6] with [6]: ")
    assert "two shapes" in words


def test_what_is_not_elementwise_is_not_tried():
    assert verdicts(custom_op(lambda x, g: np.cumsum(x, axis=1) * g, name="running")) == []
    assert verdicts(app.tanh, 1) == []


def test_a_gradient_that_comes_and_goes_is_a_difference():
    one, none = Result([np.ones(2)], [np.ones(2)]), Result([np.ones(2)], [None])
    assert one.differs_from(none) == one.far_from(none, 0.1) == none.differs_from(one) == "gradient"
    assert none.differs_from(none) == ""
