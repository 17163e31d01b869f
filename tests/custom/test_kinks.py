"""gradcheck at kinks and jumps: any slope between those to either side is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app.autograd import PyLayer, gradcheck
from app.custom.gradcheck import JUMP, KINK, SMOOTH, kind_at
from app.errors import GradcheckError


def kind(function: Any, at: float, gradient: float) -> str:
    return kind_at(lambda step: float(function(at + step)), gradient, 1e-6, 1e-6, 1e-5)


@pytest.mark.parametrize("gradient", [0.0, 0.3, 1.0])
def test_between_the_slopes_of_a_kink_any_gradient_is_right(gradient: float):
    assert kind(lambda x: max(x, 0.0), 0.0, gradient) == KINK


@pytest.mark.parametrize("gradient", [-0.1, 1.1, 5.0, np.nan])
def test_outside_of_them_none_is(gradient: float):
    assert kind(lambda x: max(x, 0.0), 0.0, gradient) == SMOOTH


def test_a_kink_inside_the_step_is_recognised():
    assert kind(lambda x: max(x, 0.0), 5e-7, 1.0) == KINK
    assert kind(lambda x: max(x, 0.0), 5e-7, 0.5) == SMOOTH


def test_a_jump_has_no_slope():
    assert kind(np.floor, 2.0, 0.0) == JUMP


@pytest.mark.parametrize("function", [np.exp, np.sin, lambda x: 1e4 * x * x])
def test_a_curve_is_no_kink(function: Any):
    assert kind(function, 0.5, 123.0) == SMOOTH


def test_what_is_drawn_anew_each_time_is_no_kink():
    random = np.random.default_rng(0)
    assert kind(lambda x: random.random(), 0.0, 0.0) == SMOOTH


class Relu(PyLayer):
    slope = 0.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return app.nn.functional.relu(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy * ((x > 0).astype("float64") + (x == 0).astype("float64") * Relu.slope)


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_gradcheck_takes_any_slope_at_the_kink(slope: float, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Relu, "slope", slope)
    assert gradcheck(Relu.apply, app.to_tensor([0.0, 1.0, -1.0], "float64", stop_gradient=False))


def test_gradcheck_refuses_one_outside(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Relu, "slope", 5.0)
    with pytest.raises(GradcheckError, match=r"wrong in 1 of 3 elements; worst at \[0\]: backward gives .*5"):
        gradcheck(Relu.apply, app.to_tensor([0.0, 1.0, -1.0], "float64", stop_gradient=False))
