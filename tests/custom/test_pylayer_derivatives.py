"""Derivatives of a PyLayer's gradient, and what gradcheck says of it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from layers import CusTanh, data, layer

import app
from app.autograd import PyLayer

# --- Gradients of gradients ---


class Cube(PyLayer):
    """Saves its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return 3.0 * x * x * dy


@pytest.mark.parametrize(
    ("cus", "derivatives"),
    [
        (Cube, [lambda x: 3 * x**2, lambda x: 6 * x, lambda x: 6 + 0 * x]),
        (
            CusTanh,  # saves its output
            [
                lambda x: 1 - np.tanh(x) ** 2,
                lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2),
                lambda x: (1 - np.tanh(x) ** 2) * (6 * np.tanh(x) ** 2 - 2),
            ],
        ),
    ],
)
@pytest.mark.parametrize("leaf", [True, False])
def test_a_backward_made_of_operators_can_be_differentiated_again(cus: Any, derivatives: Any, leaf: bool):
    start = data(0.3, -1.2)
    x = start if leaf else start * 1.0
    value = cus.apply(x)
    for derivative in derivatives:
        (value,) = app.grad(value.sum(), start, create_graph=True)
        np.testing.assert_allclose(value.numpy(), derivative(start.numpy()), rtol=1e-12)


def test_forward_is_never_recorded_and_backward_where_asked_for():
    recorded: list[bool] = []

    def noted(ctx, x):
        recorded.append(app.is_grad_enabled())
        return x * 1.0

    cus = layer(noted, noted)
    x = data(1.0)
    y = cus.apply(x)
    app.grad(y, x, retain_graph=True)
    app.grad(y, x, create_graph=True)
    assert recorded == [False, False, True]


# --- Memory ---


@pytest.mark.parametrize("saved", ["input", "output", "attribute"])
@pytest.mark.parametrize("backward", [False, True])
def test_nothing_is_kept_alive_by_a_reference_cycle(saved: str, backward: bool):
    def forward(ctx, x):
        y = app.tanh(x)
        ctx.k = 3
        if saved != "attribute":
            ctx.save_for_backward(x if saved == "input" else y)
        return y

    cus = layer(forward, lambda ctx, dy: dy * len(ctx.saved_tensor() or [1]))
    x = data(1.0, 2.0)
    gc.collect()
    gc.disable()
    try:
        y = cus.apply(x * 1.0)
        z = y * 2.0
        watched = [weakref.ref(y), weakref.ref(y._node), weakref.ref(z)]
        if backward:
            z.sum().backward()
        del y, z
        assert [w() for w in watched] == [None] * 3
    finally:
        gc.enable()
