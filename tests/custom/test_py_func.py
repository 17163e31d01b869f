"""`py_func`, as documented: the same calls in a Program and on Tensors.

`mode` is one call of py_func in either mode: it makes the inputs and outputs, and runs forward and backward.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from func_modes import F32

import app
from app import static
from app.static import InputSpec, py_func

# --- Inputs and outputs ---


@pytest.mark.parametrize("kind", [list, tuple])
def test_several_inputs_are_given_in_a_list_or_tuple(mode: Any, kind: type):
    x = kind([mode.input([1.0, 2.0]), mode.input([10.0, 20.0]), mode.input([0.5, 0.5])])
    out = py_func(lambda a, b, c: (a + b) * c, x, mode.output([2]))
    np.testing.assert_array_equal(mode.values(out)[0], [5.5, 11])


@pytest.mark.parametrize("kind", [list, tuple])
def test_several_outputs_are_given_and_come_back_in_a_list_or_tuple(mode: Any, kind: type):
    outs = kind([mode.output([2]), mode.output([1], "int64")])
    result = py_func(lambda a: (a * 2, np.array([a.size])), mode.input([1.0, 2.0]), outs)
    assert type(result) is kind
    assert all(r is o for r, o in zip(result, outs, strict=True))
    double, size = mode.values(*result)
    np.testing.assert_array_equal(double, [2, 4])
    assert (size, size.dtype) == (2, "int64")


def test_outputs_may_be_declared_by_specs_and_arrays(mode: Any):
    x = mode.input([1.0, 2.0])
    a, b = py_func(lambda v: (v + 1, v.astype("int32")), x, [InputSpec([2]), np.zeros(2, "int32")])
    assert type(a) is type(x)
    assert [v.dtype.name for v in mode.values(a, b)] == ["float32", "int32"]


def test_a_function_without_inputs():
    x, out = static.data("x", [2]), static.default_main_program().current_block().create_var(shape=[2])
    counter = iter(range(9))
    py_func(lambda: np.full(2, next(counter), F32), None, out)
    y = x + out
    values = [static.Executor().run(feed={"x": np.ones(2, F32)}, fetch_list=[y])[0] for _ in range(3)]
    np.testing.assert_array_equal(values, [[1, 1], [2, 2], [3, 3]])


def test_without_a_value_to_go_by_the_mode_decides():
    seen: list[str] = []
    py_func(lambda: seen.append("eager"), None, None)
    assert seen == ["eager"]
    assert isinstance(py_func(lambda: np.ones(1, F32), None, InputSpec([1])), app.Tensor)
    app.enable_static()
    try:
        py_func(lambda: seen.append("run"), None, None)
        made = py_func(lambda: np.ones(1, F32), None, InputSpec([1]))
    finally:
        app.disable_static()
    assert seen == ["eager"]
    assert static.Executor().run(fetch_list=[made])[0] == 1
    assert seen == ["eager", "run"]


def test_arrays_and_numbers_may_stand_beside_the_inputs(mode: Any):
    out = py_func(lambda a, b: a + b, [mode.input([1.0, 2.0]), np.array([3.0, 4.0], F32)], mode.output([2]))
    np.testing.assert_array_equal(mode.values(out)[0], [4, 6])


def test_a_tap_sees_values_and_is_executed_though_nothing_depends_on_it(mode: Any):
    seen: list[Any] = []
    x = mode.input([1.0, 2.0])
    result = py_func(lambda a, b: seen.extend([a.copy(), b.copy()]), [x, x * 2.0], None)
    assert result is None
    mode.values(x)
    np.testing.assert_array_equal(seen, [[1, 2], [2, 4]])


def test_a_tap_is_executed_in_every_run_and_in_a_clone_for_test():
    seen: list[float] = []
    loss = app.mean(static.nn.fc(static.data("x", [None, 2]), 1))
    py_func(lambda v: seen.append(float(v)), loss, None)
    app.optimizer.SGD(0.1).minimize(loss)
    program = static.default_main_program()
    executor = static.Executor()
    executor.run(static.default_startup_program())
    feed = {"x": np.ones((1, 2), F32)}
    for _ in range(2):
        executor.run(program, feed)
    executor.run(program.clone(for_test=True), feed)
    assert len(seen) == 3
    assert seen[0] > seen[1] > seen[2]


def test_a_tap_may_look_at_a_gradient():
    seen: list[Any] = []
    x = static.data("x", [2])
    x.stop_gradient = False
    (slope,) = static.gradients(x * x, x)
    py_func(lambda g: seen.append(g.copy()), slope, None)
    static.Executor().run(feed={"x": np.array([1, 2], F32)})
    np.testing.assert_array_equal(seen, [[2, 4]])


def test_a_tap_does_not_stand_in_the_way_of_gradients(mode: Any):
    x = mode.input([1.0, 2.0])
    y = x * x
    py_func(lambda v: None, y, None)
    np.testing.assert_array_equal(mode.gradients(y, [x])[0], [2, 4])


# --- What the function gets ---


def test_the_function_gets_arrays_that_numpy_works_on(mode: Any):
    seen: list[Any] = []

    def look(x: Any, whole: Any, scalar: Any) -> np.ndarray:
        seen.extend(type(v) for v in (x, whole, scalar))
        assert np.array(x).tolist() == [[1.0, 2.0]]
        assert (x.shape, whole.dtype.name, scalar.shape) == ((1, 2), "int64", ())
        return np.array(x) + x

    x = mode.input([[1.0, 2.0]])
    out = py_func(look, [x, mode.input([3], stop_gradient=True), app.mean(x)], mode.output([1, 2]))
    np.testing.assert_array_equal(mode.values(out)[0], [[2, 4]])
    assert seen == [np.ndarray] * 3


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8", "bool"])
def test_values_keep_their_type(dtype: str):
    array = np.array([0, 1, 1]).astype(dtype)
    x = static.data("x", [3], dtype)
    out = py_func(lambda v: v[::-1], x, static.default_main_program().current_block().create_var("out", [3], dtype))
    found = static.Executor().run(feed={"x": array}, fetch_list=[out])[0]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, array[::-1])
    eager = py_func(lambda v: v[::-1], app.to_tensor(array), InputSpec([3], dtype))
    np.testing.assert_array_equal(eager.numpy(), found)
    assert eager.dtype == dtype


def test_functions_may_be_any_callable(mode: Any):
    class Scale:
        """Not hashable, as it compares by value."""

        def __init__(self, factor: float):
            self.factor = factor

        def __eq__(self, other: object) -> bool:
            return True

        def __call__(self, x: np.ndarray) -> np.ndarray:
            return x * np.float32(self.factor)

        def slope(self, x: np.ndarray, y: np.ndarray, dy: np.ndarray) -> np.ndarray:
            return dy * np.float32(self.factor)

    double, triple = Scale(2), Scale(3)
    x = mode.input([1.0])
    y = py_func(double, x, mode.output([1]), double.slope)
    z = py_func(triple, x, mode.output([1]), triple.slope)
    assert [v.item() for v in mode.values(y, z)] == [2, 3]
    assert [mode.gradients(v, [x])[0].item() for v in (y, z)] == [2, 3]


def test_one_function_may_be_hooked_in_many_times(mode: Any):
    x = h = mode.input([0.3, -0.8])
    for _ in range(3):
        h = py_func(np.tanh, h, mode.output([2]), lambda x, y, dy: dy * (1 - y * y))
    expected = app.to_tensor([0.3, -0.8], stop_gradient=False)
    deep = app.tanh(app.tanh(app.tanh(expected)))
    np.testing.assert_allclose(mode.gradients(h, [x])[0], app.grad(deep, expected)[0].numpy(), rtol=1e-6)


# --- The declared shape ---


def test_unknown_sizes_of_the_declared_shape_fit_any_size():
    x = static.data("x", [None, 3])
    out = static.default_main_program().current_block().create_var("out", [-1, 3])
    py_func(lambda v: v + 1, x, out)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (1, 4):
            feed = {"x": np.zeros((rows, 3), F32)}
            assert static.Executor().run(feed=feed, fetch_list=[out])[0].shape == (rows, 3)
