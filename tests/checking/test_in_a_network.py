"""The gradient along a random direction: what is wrong is found at any size, and kinks, jumps and rounding are not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app.checking.checks.direction import Point, how_gradient_is_wrong
from app.checking.in_a_network import differs_each_time, in_a_network, mixes_rows
from app.checking.operators import user_operator
from app.nn import functional

Arrays = Callable[..., Any]


def examined(operator: Any, inputs: np.ndarray, **settings: Any) -> Point:
    at = in_a_network(user_operator(operator, "operator"), settings, inputs.astype("float32"), 100.0)
    assert at is not None
    return at


def operator(forward: Arrays, backward: Arrays) -> Any:
    custom = app.custom_op(forward, name="operator")
    custom.backward(backward)
    return custom


def softmax(x):
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def mean(x):
    return app.mean(x, axis=1, keepdim=True)


RIGHT: dict[str, Arrays] = {
    "relu": lambda x: app.relu(x),
    "clip": lambda x: app.clip(x, -1.0, 1.0),
    "floor": lambda x: app.floor(x * 4.0),
    "step and slope": lambda x: app.where(x > 0.0, x, 0.1 * x) + app.floor(x),
    "steep": lambda x: app.tanh(50.0 * x),
    "cube": lambda x: x * x * x,
    "exp": lambda x: app.exp(x),
    "maxout": lambda x: app.max(app.reshape(x, [x.shape[0], -1, 2]), axis=2),
    "max of a row": lambda x: app.max(x, axis=1, keepdim=True) + x,
    "sort": lambda x: app.take_along_axis(x, app.argsort(x, axis=1), 1),
    "softmax": lambda x: functional.softmax(x),
    "norm of a row": lambda x: (x - mean(x)) / app.sqrt(mean(app.square(x - mean(x))) + 1e-5),
    "in float32": lambda x: app.tanh(x.astype("float32")).astype("float64"),
}
INPUTS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "normal": lambda random: random.normal(size=(256, 100)),
    "zeros": lambda random: np.zeros((64, 100)),
    "after a relu": lambda random: np.maximum(random.normal(size=(256, 100)), 0),
    "whole numbers": lambda random: random.integers(-3, 4, size=(256, 100)),
    "large": lambda random: 30 * random.normal(size=(256, 100)),
    "small": lambda random: 1e-3 * random.normal(size=(64, 40)),
}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 40))])
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_gradient_is_never_wrong_at_kinks_jumps_or_by_rounding(name: str, seed: int):
    for kind, inputs in INPUTS.items():
        with np.errstate(all="ignore"):
            assert (kind, how_gradient_is_wrong(examined(RIGHT[name], inputs(np.random.default_rng(seed))))) == (
                kind,
                "",
            )


@pytest.mark.parametrize(
    ("name", "forward", "backward", "cause"),
    [
        ("a factor", lambda x: np.maximum(x, 0), lambda x, dy: dy * (x > 0) * 0.99, "it is 0.99 times what it should"),
        ("a branch", lambda x: np.maximum(x, 0), lambda x, dy: dy * (x > 0) * np.where(x > 3, 1.01, 1), "in [1-9] of"),
        ("a column", lambda x: x * 1, lambda x, dy: dy * np.where(np.arange(x.shape[1]) < 99, 1, 1.01), r"\[0, 99\]"),
        ("a bound", lambda x: np.clip(x, 0, 6), lambda x, dy: dy * (x > 0), "it should be 0"),
        ("far out", lambda x: np.where(x > 20, 2 * x - 20, x), lambda dy: dy, "it is half of what it should be"),
        ("a term", softmax, lambda x, dy: softmax(x) * dy, "wrong in 100 of 100 elements"),
        (
            "a thousandth",
            lambda x: np.tanh(x),
            lambda x, dy: 1.001 * dy * (1 - np.tanh(x) ** 2),
            "it is 1.001 times what it should be",
        ),
    ],
)
def test_a_wrong_gradient_is_found_and_its_elements_are_named(name: str, forward: Arrays, backward: Arrays, cause: str):
    inputs = np.random.default_rng(0).normal(size=(256, 100))
    with np.errstate(all="ignore"):
        text = how_gradient_is_wrong(examined(operator(forward, backward), inputs))
    assert re.search(cause, text), (name, text)


def test_a_row_that_is_too_long_is_compared_along_the_direction_alone():
    wrong = operator(lambda x: x * 2, lambda dy: dy)
    text = how_gradient_is_wrong(examined(wrong, np.random.default_rng(0).normal(size=(4, 5000))))
    assert text.startswith("in a random direction: backward gives ")


def test_a_parameter_of_a_layer_is_moved_too():
    class Scaled(app.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.factor = self.create_parameter([1])

        def forward(self, x: Any) -> Any:
            class Product(app.autograd.PyLayer):
                @staticmethod
                def forward(ctx: Any, x: Any, factor: Any) -> Any:
                    ctx.save_for_backward(x, factor)
                    return x * factor

                @staticmethod
                def backward(ctx: Any, dy: Any) -> Any:
                    x, factor = ctx.saved_tensor()
                    return dy * factor, app.sum(dy * x).reshape([1]) * 0.5

            return Product.apply(x, self.factor)

    text = how_gradient_is_wrong(examined(Scaled, np.random.default_rng(0).normal(size=(8, 5))))
    assert text.startswith("in a random direction: ")


def test_operators_that_keep_state_or_mix_rows_are_told_from_those_that_do_not():
    calls = []

    def counting(x):
        calls.append(0)
        return x * len(calls)

    inputs = np.random.default_rng(0).normal(size=(16, 8))
    assert differs_each_time(examined(operator(counting, lambda dy: dy), inputs)) == "result"
    for right in RIGHT.values():
        assert differs_each_time(examined(right, inputs)) == ""
        assert not mixes_rows(user_operator(right, "operator"), examined(right, inputs))
    for mixing in (lambda x: x - app.mean(x, axis=0), lambda x: x * app.max(x, axis=0), lambda x: x[::-1]):
        assert mixes_rows(user_operator(mixing, "operator"), examined(mixing, inputs))
