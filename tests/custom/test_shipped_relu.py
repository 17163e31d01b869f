"""`custom.relu` is the built-in relu in every bit, though it shares no code with it."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import app
from app import static
from app.custom.lookup import find_operator
from app.custom.shelf import relu as module

pytestmark = pytest.mark.slow

custom, built_in = find_operator("custom.relu"), app.relu

SPECIAL = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e-45, -1e-45, 1.0, -1.0]
LAYOUTS = {
    "as it is": lambda a: a,
    "transposed": lambda a: a.T,
    "reversed, every other": lambda a: a[::-1, ::2],
    "one number": lambda a: a.reshape(-1)[:1].reshape(()) if a.size else np.zeros((), a.dtype),
}
"""Few, as Numba compiles the functions for each."""


@st.composite
def arrays(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of one shape and layout, with every kind of number in them."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    shape = draw(st.sampled_from([(0, 3), (1, 1), (3, 0), (7, 9), (33, 5)]))
    layout = draw(st.sampled_from(sorted(LAYOUTS)))
    dtype = "float32" if layout != "as it is" else draw(st.sampled_from(["float32", "float64"]))
    both = np.where(rng.random((2, *shape)) < 0.5, rng.choice(SPECIAL, (2, *shape)), rng.normal(size=(2, *shape)))
    x, dy = (LAYOUTS[layout](a) for a in both.astype(dtype))
    return x, dy


def bits(array: np.ndarray) -> Any:
    return array.dtype, array.shape, array.tobytes()


def value_and_gradient(operator: Any, x: np.ndarray, dy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    tensor = app.Tensor(x, stop_gradient=False)
    y = operator(tensor)
    return y.numpy(), app.grad(y, tensor, app.Tensor(dy))[0].numpy()


@settings(max_examples=60, deadline=None)
@given(arrays())
@example((np.array(SPECIAL, "float32"), np.array(SPECIAL[::-1], "float32")))
def test_values_and_gradients_are_equal_bit_for_bit(pair: tuple[np.ndarray, np.ndarray]):
    for mine, expected in zip(value_and_gradient(custom, *pair), value_and_gradient(built_in, *pair), strict=True):
        assert bits(mine) == bits(expected)


def test_values_and_gradients_are_equal_in_a_program():
    x = static.data("x", [None, 3])
    x.stop_gradient = False
    array = np.array(SPECIAL, "float32").reshape(3, 3)
    fetched = []
    for operator in (custom, built_in):
        y = operator(x)
        assert y.spec == x.spec
        fetched += [y, *static.gradients(y, x, static.data("dy", [None, 3]))]
    y, dx, y_expected, dx_expected = static.Executor().run(
        feed={"x": array, "dy": array[::-1].copy()}, fetch_list=fetched
    )
    assert bits(y) == bits(y_expected)
    assert bits(dx) == bits(dx_expected)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float16"])
def test_whole_numbers_and_half_precision_keep_their_type(dtype: str):
    x = app.to_tensor(np.array([3, -2, 0], dtype), stop_gradient=dtype != "float16")
    out = custom(x)
    assert (out.dtype, out.tolist()) == (dtype, [3, 0, 0])
    if dtype == "float16":
        out.sum().backward()
        assert (x.grad.dtype, x.grad.tolist()) == (dtype, [1, 0, 0])


def test_it_is_made_of_two_numba_functions_with_py_func():
    source = inspect.getsource(module)
    assert "py_func(relu_forward" in source
    assert "app.ops.activation" not in source
    assert all(hasattr(f, "py_func") for f in (module.relu_forward, module.relu_backward))
    custom(static.data("x", [None, 3]))
    assert "py_func.relu_forward(x)  // relu.py:" in str(static.default_main_program())
