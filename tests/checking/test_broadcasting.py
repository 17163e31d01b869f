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
from app.custom import custom_op


def product(grad_of_g: Callable[..., Any]) -> Any:
    """x * g, with a correct gradient of x and this one of g."""

    @custom_op(infer=lambda x, g: np.broadcast_shapes(tuple(x.shape), tuple(g.shape)))
    def scaled(x, g):
        return x * g

    scaled.backward(lambda x, g, dy: (summed(dy * g, x), grad_of_g(dy * x, g)))
    return scaled


def summed(gradient: np.ndarray, one: np.ndarray) -> np.ndarray:
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - one.ndim)))
    return gradient.sum(axis=tuple(a for a, s in enumerate(one.shape) if s == 1), keepdims=True)


def refuses(x, g):
    if x.shape != g.shape:
        raise ValueError("two shapes")
    return x * g


REFUSED = "operator refuses (test_broadcasting.py:"
RIGHT = "ok inputs are broadcast, and gradients summed back to their shapes"
NOT_SUMMED = product(lambda gradient, one: np.resize(gradient, one.shape))


@pytest.mark.parametrize(
    ("operator", "inputs", "expected"),
    [
        (app.multiply, "xg", RIGHT),
        (app.where, "xgw", RIGHT),
        (product(summed), "xg", RIGHT),
        (NOT_SUMMED, "xg", "FAILED [4, 6] with [6]: the gradient of g is not summed over the broadcast axes"),
        (product(lambda gradient, one: gradient), "xg", "FAILED [4, 6] with [6]: the gradient fails: "),
        (custom_op(lambda x, g: x * 2), "xg", "FAILED [4, 1] with [1, 6]: it gives shape [4, 1], expected [4, 6]"),
        (
            custom_op(lambda x, g: x * g * g.size),
            "xg",
            "FAILED [4, 6] with [6]: it gives other numbers than for expanded",
        ),
        (custom_op(refuses), "xg", f"note inputs are not broadcast: [4, 6] with [6]: {REFUSED}"),
        (custom_op(lambda x, g: np.cumsum(x, axis=1) * g), "xg", ""),  # not elementwise
        (app.tanh, "x", ""),
    ],
)
def test_the_check_says(operator: Any, inputs: str, expected: str):
    subject = Subject(found(operator, "it"), tuple(Input(name, (4, 6)) for name in inputs))
    told = [f"{v.state} {v.words}" for v in broadcasting(subject)]
    assert len(told) == bool(expected)
    assert "".join(told).startswith(expected)


def test_a_gradient_in_one_of_two_results_is_a_difference():
    one, none = Result([np.ones(2)], [np.ones(2)]), Result([np.ones(2)], [None])
    assert one.differs_from(none) == one.far_from(none, 0.1) == none.differs_from(one) == "gradient"
    assert none.differs_from(none) == ""
