"""Gradients of built-in operators, choices and loops, and the gradients of these, against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import control_zoo
import numpy as np
import pytest
import steps_over_rows

import app
from app import static
from app.autograd import PyLayer
from app.errors import OperatorError, ShapeError
from app.graph import static_mode
from app.static.nn import cond, while_loop


@pytest.fixture(autouse=True)
def _constants_in_programs() -> Iterator[None]:
    with static_mode():
        yield


def counted(times: Any, step: Callable[..., Any], value: Any) -> Any:
    """A value after some steps, each of which is told its number."""
    return while_loop(lambda i, v: i < times, lambda i, v: [i + 1, step(i, v)], [app.full([], 0, "int64"), value])[1]


NETWORKS: dict[str, Callable[[Any], Any]] = {
    **steps_over_rows.ONE,
    **{name: network for name, network in control_zoo.ONE.items() if not name.startswith(control_zoo.CUSTOM)},
    "products in a loop": lambda x: control_zoo.TWO["products in a loop"](x, app.matmul(x, x, transpose_x=True)),
}


def differences(f: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    found = np.zeros_like(at)
    for i in range(at.size):
        step = np.zeros_like(at)
        step.flat[i] = 1e-6
        found.flat[i] = (f(at + step) - f(at - step)) / 2e-6
    return found


@pytest.mark.parametrize("name", NETWORKS)
def test_first_and_second_derivatives_agree_with_finite_differences(name: str):
    x = static.data("x", [1, 3], "float64")
    x.stop_gradient = False
    loss = app.sum(NETWORKS[name](x))
    (dx,) = static.gradients([loss], [x])
    length = app.sum(dx * dx)
    (ddx,) = static.gradients([length], [x])

    def value(variable: Any, at: np.ndarray) -> Any:
        return static.Executor().run(feed={"x": at}, fetch_list=[variable])[0]

    for at in (np.array([[0.4, 0.7, 0.9]]), np.array([[-0.4, 0.2, -0.9]])):
        np.testing.assert_allclose(value(dx, at), differences(lambda v: value(loss, v), at), rtol=1e-5, atol=1e-6)
        if ddx is None:  # the gradient is the same everywhere
            continue
        np.testing.assert_allclose(value(ddx, at), differences(lambda v: value(length, v), at), rtol=1e-4, atol=1e-5)


def test_the_backward_pass_computes_no_forward_value_again():
    calls: list[float] = []

    def seen(v: np.ndarray) -> np.ndarray:
        calls.append(float(v.sum()))
        return v * 2.0

    def step(i: Any, v: Any) -> Any:
        return static.py_func(seen, v, static.InputSpec([3], "float64"), lambda v, y, dy: dy * 2.0)

    x = static.data("x", [3], "float64")
    x.stop_gradient = False
    (dx,) = static.gradients([counted(3, step, x)], [x])
    (found,) = static.Executor().run(feed={"x": np.ones(3)}, fetch_list=[dx])
    assert (found.tolist(), calls) == ([8.0, 8.0, 8.0], [3.0, 6.0, 12.0])


class Squared(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy * x * 2.0


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_a_pylayer_keeps_its_context_at_each_iteration(engine: str):
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    y = counted(2, lambda i, v: Squared.apply(v) + cond(i == 1, lambda: Squared.apply(v), lambda: v), x)
    (dx,) = static.gradients([y], [x])
    (found,) = static.Executor(engine=engine).run(feed={"x": np.array([1.0, 2.0])}, fetch_list=[dx])
    assert found.tolist() == [24.0, 120.0]  # of 2 (x² + x)²


@pytest.mark.parametrize("engine", ["reference", pytest.param("compiled", marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "step", [lambda v, x: app.nn.functional.dropout(v, 0.25), lambda v, x: v + x * app.rand([64], "float64")]
)
def test_the_gradient_of_a_loop_uses_the_random_numbers_of_its_iterations(step: Callable[[Any, Any], Any], engine: str):
    x = static.data("x", [64], "float64")
    x.stop_gradient = False
    y = counted(3, lambda i, v: step(v, x), x)
    (dx,) = static.gradients([y], [x])
    value = np.linspace(1, 2, 64)
    found, slope = static.Executor(engine=engine).run(feed={"x": value}, fetch_list=[y, dx])
    np.testing.assert_allclose(slope, found / value)


def test_random_numbers_in_a_loop_inside_a_loop_need_a_seed():
    x = static.data("x", [4], "float64")
    x.stop_gradient = False
    drop = app.nn.functional.dropout
    y = counted(2, lambda i, v: counted(2, lambda j, w: drop(w, 0.5), v), x)
    with pytest.raises(OperatorError, match=r"dropout_mask, which computes .* draws random numbers .* random_seed"):
        static.gradients([y], [x])


def test_gradients_of_a_loop_whose_shapes_change_are_an_error_at_run_time():
    x = static.data("x", [-1], "float64")
    x.stop_gradient = False
    (y,) = while_loop(lambda y: app.sum(y) < 9.0, lambda y: [app.concat([y * y, y], axis=0)], [x])
    (dx,) = static.gradients([y], [x])
    with pytest.raises(ShapeError, match=r"changes its shape between iterations \(\[2\] and \[4\]\)"):
        static.Executor().run(feed={"x": np.ones(2)}, fetch_list=[dx])


def test_gradients_inside_a_branch():
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    y = cond(app.sum(x) > 0, lambda: static.gradients([x * x * x], [x])[0], lambda: x)
    for at, expected in (([1.0, 2.0], [3.0, 12.0]), ([-1.0, -2.0], [-1.0, -2.0])):
        assert static.Executor().run(feed={"x": np.array(at)}, fetch_list=[y])[0].tolist() == expected


def test_a_detached_value_carries_no_gradient():
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    y = cond(app.sum(x) > 0, lambda: x.detach() * 2.0, lambda: x.detach())
    assert y.stop_gradient
    assert static.gradients([app.sum(y * x)], [x])[0] is not None


@pytest.mark.parametrize("engine", ["reference", pytest.param("compiled", marks=pytest.mark.soak)])
def test_a_gradient_uses_a_value_from_before_a_branch_overwrites_it(engine: str):
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    total = static.create_global_var([2], 3.0, "float64")

    def times() -> Any:
        y = x * total
        app.ops.apply(app.ops.REGISTRY["add"], [total, y], {}, into=[total])
        return y

    (dx,) = static.gradients([cond(app.sum(x) > 0, times, lambda: x)], [x])
    executor = static.Executor(engine=engine)
    executor.run(static.default_startup_program())
    found = [executor.run(feed={"x": np.ones(2)}, fetch_list=[dx, total]) for _ in range(2)]
    assert [[v.tolist() for v in pair] for pair in found] == [[[3.0, 3.0], [6.0, 6.0]], [[6.0, 6.0], [12.0, 12.0]]]
