"""A PyLayer in a Program: one operator, differentiated by the backward of its class."""

from __future__ import annotations

from typing import Any

import numpy as np
from layers import CusTanh, layer
from layers import run as run_arrays
from layers import variable as data

import app
from app import static

F32 = "float32"


def run(*fetched: Any, **feed: Any) -> list[np.ndarray]:
    return run_arrays(*fetched, **{name: np.asarray(value, F32) for name, value in feed.items()})


def test_the_class_is_one_operator_with_one_for_its_gradient_for_every_batch_size():
    x = data("x", None, 3)
    y, z = CusTanh.apply(x), app.tanh(x)
    assert y.spec == ((-1, 3), F32)
    assert "CusTanh(x)  // layers.py:" in str(y.program)
    gradients = static.gradients(y, x)
    assert [op.type for op in y.block.ops] == ["CusTanh", "tanh", "full_like", "CusTanh_grad"]
    fetched = [y, z, *gradients, *static.gradients(z, x)]
    for rows in (1, 4):
        found, expected, slope, expected_slope = run(*fetched, x=np.linspace(-2, 2, rows * 3).reshape(rows, 3))
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-6)


def test_forward_runs_in_every_run_and_backward_where_it_is_needed():
    calls: list[str] = []
    cus = layer(
        lambda ctx, x: (calls.append("forward"), x * 2.0)[1], lambda ctx, dy: (calls.append("backward"), dy * 2.0)[1]
    )
    x, fixed = data("x", 2), static.data("fixed", [2])
    y, z = cus.apply(x), cus.apply(fixed)
    assert z.stop_gradient
    (g,) = static.gradients(y + z, x)
    calls.clear()
    for _ in range(2):
        np.testing.assert_array_equal(run(g, x=[1, 2], fixed=[1, 2])[0], [2, 2])
    assert calls == ["forward", "forward", "backward"] * 2


def test_integer_outputs_have_no_gradient():
    _, n = layer(lambda ctx, x: (x * 1.0, app.argmax(x)), lambda ctx, dy, dn: dy).apply(data("x", 3))
    assert n.spec == ((), "int64")
    assert n.stop_gradient
    assert run(n, x=[0, 5, 1])[0] == 1


def test_a_gradient_is_converted_to_the_type_of_the_input():
    cus = layer(lambda ctx, x: x * 1.0, lambda ctx, dy: app.cast(dy, "float64"))
    x = data("x", 1)
    assert run(*static.gradients(cus.apply(x), x), x=[1])[0].dtype == F32
