"""Choices and loops as native `if` and `while`: what is compiled, what stays in Python and why.

`control_zoo` has the values and gradients that every engine must give.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import both_engines
import numpy as np
import pytest
from both_engines import compiled
from numba import njit

import app
from app import static
from app.custom import custom_op
from app.errors import OperatorError
from app.graph import static_mode
from app.static.nn import cond, while_loop

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _constants_in_programs() -> Iterator[None]:
    with static_mode():
        yield


def rows(count: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 3))


def data() -> Any:
    x = static.data("x", [-1, 3], "float64")
    x.stop_gradient = False
    return x


def zero() -> Any:
    return app.full([], 0, "int64")


def agree(fetch: list[Any], *feeds: np.ndarray, compiles: bool = False) -> None:
    feeds = feeds or (rows(), rows(1, 1), rows(7, 2), rows())
    both_engines.agree(fetch, *({"x": feed} for feed in feeds), rtol=1e-9, compiles=compiles)


@custom_op(elementwise=True)
def bent(x: Any) -> Any:
    return x if x > 0 else 0.1 * x


@bent.backward
def _(x: Any, dy: Any) -> Any:
    return dy if x > 0 else 0.1 * dy


def slowly(x: np.ndarray) -> np.ndarray:
    return np.array([[float(v) * 2.0 for v in row] for row in x.tolist()]).reshape(x.shape)


def like() -> Any:
    return static.InputSpec([-1, 3], "float64")


def test_choices_and_loops_with_custom_operators_inside_are_native():
    x = data()

    def step(i: Any, v: Any) -> list[Any]:
        return [i + 1, cond(app.sum(v) > 1.0, lambda: app.tanh(v), lambda: bent(v) * 2.0 + x)]

    _, y = while_loop(lambda i, v: i < 5, step, [zero(), x])
    (dx,) = static.gradients([y], [x])
    agree([y, dx], compiles=True)
    assert compiled(y, dx).source.is_whole
    text = static.default_main_program().explain([y, dx], source=False)
    assert "compiled: a native while" in text
    assert "compiled: a native if" in text
    assert "compiled: a native for" in text  # of the gradient
    assert "Python call" not in text


def test_a_program_without_data_that_loops_is_compiled():
    i, s = while_loop(lambda i, s: i < 10, lambda i, s: [i + 1, s + i], [zero(), zero()])
    assert static.Executor(engine="compiled").run(fetch_list=[i, s]) == [10, 45]
    assert compiled(i, s).source.is_whole


def test_constants_in_and_out_of_branches():
    x = data()
    scale = app.full([], 3.0, "float64")
    y, z = cond(app.sum(x) > 0.0, lambda: [scale, x * scale], lambda: [app.full([], 5.0, "float64"), x])
    (w,) = cond(app.full([], True, "bool"), lambda: [x * 2.0], lambda: [x])
    agree([y, z, w], rows(), -rows())


def test_training_reuses_memory_inside_a_loop_in_one_native_call():
    x = data()
    w = static.create_parameter([3, 3], "float64")

    def step(i: Any, v: Any) -> list[Any]:
        for _ in range(3):
            v = app.tanh(app.matmul(v, w))
        return [i + 1, v]

    _, y = while_loop(lambda i, v: i < 3, step, [zero(), x])
    assert sum(b.dtype == "float64" for b in compiled(y).plan.buffers) == 4  # two besides the data and the value
    loss = app.mean(y * y)
    app.optimizer.Momentum(0.1, 0.9).minimize(loss)
    agree([loss])
    assert compiled(loss).runs_many


def test_control_flow_with_a_python_call_inside_is_a_python_call_that_explain_names():
    x = data()

    def step(i: Any, v: Any) -> list[Any]:
        return [i + 1, cond(app.sum(v) > 0.0, lambda: static.py_func(slowly, v, like()), lambda: v + 1.0)]

    _, y = while_loop(lambda i, v: i < 3, step, [zero(), app.tanh(x)])
    agree([app.exp(y)])
    text = static.default_main_program().explain([y], source=False)
    assert re.search(
        r"Python call: operator py_func\.slowly \(test_native_control_flow\.py:\d+\) inside it: its function", text
    )


def test_a_loop_whose_gradient_changes_nothing_is_printed_as_python():
    x = data()
    _, y, _z = while_loop(lambda i, y, z: i < 2, lambda i, y, z: [i + 1, y + 1.0, z], [zero(), x * 1.5, x * 2.0])
    agree(static.gradients([app.sum(y)], [x]))


def test_second_derivatives_of_choices_and_loops_are_native():
    x = data()
    y = cond(app.sum(x) > 0.0, lambda: app.tanh(x) * x, lambda: x * x)
    _, z = while_loop(lambda i, v: i < 3, lambda i, v: [i + 1, app.sin(v) * x], [zero(), y])
    (dz,) = static.gradients([z], [x])
    (ddz,) = static.gradients([dz * dz], [x])
    agree([ddz], rows(), -rows(), rows(1))
    assert compiled(ddz).source.is_whole


def test_the_gradients_of_a_loop_may_be_the_values_of_the_loop_around_it():
    """They are written over the values that they are computed from."""
    x = data()

    def step(i: Any, v: Any, w: Any) -> list[Any]:
        _, z = while_loop(lambda j, z: j < 3, lambda j, z: [j + 1, app.sin(z) * 0.4 * v + w], [zero(), v])
        return [i + 1, *static.gradients([app.sum(z * z)], [v, w])]

    _, v, w = while_loop(lambda i, v, w: i < 3, step, [zero(), x, app.cos(x)])
    agree([v, w])


@njit
def raising(v: Any) -> Any:
    if v.size > 3:
        raise ValueError("too many")
    return v.copy()


@pytest.mark.parametrize(
    ("branch", "message"),
    [
        (lambda x: app.gather(x, app.arange(0, 4, dtype="int64")), r"operator cond.*out of bounds"),
        (lambda x: static.py_func(raising, x, like()), r"py_func\.raising .*raised ValueError: too many"),
    ],
    ids=["built-in", "custom"],
)
def test_an_error_inside_a_branch_names_the_operator(branch: Any, message: str):
    x = data()
    y = cond(app.sum(x) > 0.0, lambda: app.sum(branch(x)), lambda: app.sum(x))
    agree([y], -np.ones((1, 3)))
    for engine in ("compiled", "reference"):
        with pytest.raises(OperatorError, match=message):
            static.Executor(engine=engine).run(feed={"x": np.ones((3, 3))}, fetch_list=[y])
