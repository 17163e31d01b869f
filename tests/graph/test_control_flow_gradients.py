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
from app.errors import InPlaceError, OperatorError
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
    slopes = np.zeros_like(at)
    for i in range(at.size):
        step = np.zeros_like(at)
        step.flat[i] = 1e-6
        slopes.flat[i] = (f(at + step) - f(at - step)) / 2e-6
    return slopes


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


def test_a_gradient_changes_no_operator_of_the_forward_pass():
    x = static.data("x", [3], "float64")
    x.stop_gradient = False
    y = counted(3, lambda i, v: cond(i < 1, lambda: v * x, lambda: app.sin(v)), x)
    program = static.default_main_program()
    before = str(program).split("// forward")[1]
    static.gradients(static.gradients([y], [x]), [x])
    assert str(program).split("// forward")[1].split("\n\n    // backward")[0] == before.removesuffix("\n}")


def test_the_functions_of_custom_operators_in_a_loop_are_called_again_for_its_gradient():
    calls: list[float] = []

    def double(v: np.ndarray) -> np.ndarray:
        calls.append(float(v.sum()))
        return v * 2.0

    def step(i: Any, v: Any) -> Any:
        y = static.py_func(double, v, static.InputSpec([3], "float64"), lambda v, y, dy: dy * 2.0)
        return y * y

    x = static.data("x", [3], "float64")
    x.stop_gradient = False
    (dx,) = static.gradients([counted(2, step, x)], [x])
    (gradient,) = static.Executor().run(feed={"x": np.ones(3)}, fetch_list=[dx])
    forward = [3.0, 12.0]
    assert (gradient.tolist(), calls) == ([256.0] * 3, [*forward, *forward[:-1], *forward[::-1]])


class Squared(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy * x * 2.0


@pytest.mark.parametrize("engine", ["reference", pytest.param("compiled", marks=pytest.mark.soak)])
def test_a_pylayer_has_a_context_at_each_iteration(engine: str):
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    y = counted(2, lambda i, v: Squared.apply(v) + cond(i == 1, lambda: Squared.apply(v), lambda: v), x)
    (dx,) = static.gradients([y], [x])
    (gradient,) = static.Executor(engine=engine).run(feed={"x": np.array([1.0, 2.0])}, fetch_list=[dx])
    assert gradient.tolist() == [24.0, 120.0]  # of 2 (x² + x)²


STOCHASTIC = [lambda v, x: app.nn.functional.dropout(v, 0.25), lambda v, x: v + x * app.rand([64], "float64")]


@pytest.mark.parametrize("engine", ["reference", pytest.param("compiled", marks=pytest.mark.soak)])
@pytest.mark.parametrize("step", STOCHASTIC)
def test_the_gradient_of_a_loop_uses_the_random_numbers_of_its_iterations(step: Callable[[Any, Any], Any], engine: str):
    static.default_main_program().random_seed = 1
    x = static.data("x", [64], "float64")
    x.stop_gradient = False
    y = counted(3, lambda i, v: step(v, x), x)
    (dx,) = static.gradients([y], [x])
    value = np.linspace(1, 2, 64)
    result, slope = static.Executor(engine=engine).run(feed={"x": value}, fetch_list=[y, dx])
    np.testing.assert_allclose(slope, result / value)


@pytest.mark.parametrize("step", STOCHASTIC)
@pytest.mark.parametrize(
    "network",
    [
        lambda x, step: cond(app.sum(x) > 0.0, lambda: step(x, x), lambda: x),
        lambda x, step: counted(2, lambda i, v: step(v, x), x),
        lambda x, step: counted(2, lambda i, v: counted(2, lambda j, w: step(w, x), v), x),
    ],
    ids=["a branch", "a loop", "a loop in a loop"],
)
def test_gradients_of_random_numbers_without_a_seed_are_refused(network: Any, step: Callable[[Any, Any], Any]):
    x = static.data("x", [64], "float64")
    x.stop_gradient = False
    y = network(x, step)
    with pytest.raises(OperatorError, match=r"gradients\.py:\d+\) draws random .*random_seed"):
        static.gradients([y], [x])


def test_random_numbers_that_a_gradient_does_not_read_and_dropout_in_evaluation_have_gradients():
    x = static.data("x", [64], "float64")
    x.stop_gradient = False

    def step(v: Any) -> Any:
        return app.nn.functional.dropout(v * x, 0.5, training=False) + app.rand([64], "float64")

    y = cond(app.sum(x) > 0.0, lambda: step(x), lambda: x)
    (dx,) = static.gradients([y], [x])
    value = np.linspace(1, 2, 64)
    np.testing.assert_allclose(static.Executor().run(feed={"x": value}, fetch_list=[dx])[0], 2 * value)


def test_a_loop_whose_shapes_change_has_gradients():
    x = static.data("x", [-1], "float64")
    x.stop_gradient = False
    (y,) = while_loop(lambda y: app.sum(y) < 9.0, lambda y: [app.concat([y * y, y], axis=0)], [x])
    (dx,) = static.gradients([y], [x])
    at = np.array([0.9, 1.2])
    gradient = static.Executor().run(feed={"x": at}, fetch_list=[dx])[0]
    value = lambda v: float(static.Executor().run(feed={"x": v}, fetch_list=[y])[0].sum())  # noqa: E731
    np.testing.assert_allclose(gradient, differences(value, at), rtol=1e-6)


def test_gradients_inside_a_branch():
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    y = cond(app.sum(x) > 0, lambda: static.gradients([x * x * x], [x])[0], lambda: x)
    for at, expected in (([1.0, 2.0], [3.0, 12.0]), ([-1.0, -2.0], [-1.0, -2.0])):
        assert static.Executor().run(feed={"x": np.array(at)}, fetch_list=[y])[0].tolist() == expected


def test_a_gradient_inside_is_another_variable_than_the_one_outside():
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    (outer,) = static.gradients([x * x], [x])
    y = cond(app.sum(x) > 0.0, lambda: static.gradients([app.sin(x)], [x])[0] + outer, lambda: x)
    z = counted(1, lambda i, v: static.gradients([app.cos(x)], [x])[0] + outer, x)
    at = np.array([0.5, 1.0])
    results = static.Executor().run(feed={"x": at}, fetch_list=[y, z])
    np.testing.assert_allclose(results, [np.cos(at) + 2 * at, -np.sin(at) + 2 * at])


@pytest.mark.parametrize(
    "network",
    [
        lambda x, h, part: cond(app.sum(x) > 0.0, lambda: part(h * x, x), lambda: x),
        lambda x, h, part: counted(2, lambda i, v: part(app.sin(x) * h, x), x),
        lambda x, h, part: counted(2, lambda i, v: part(v * x, x), x),
        lambda x, h, part: cond(app.sum(x) > 0.0, lambda: counted(2, lambda i, v: part(h * v * 2.0, x), x), lambda: x),
    ],
)
def test_gradients_inside_of_what_depends_on_the_input_outside_are_refused(network: Any):
    def part(value: Any, x: Any) -> Any:
        return static.gradients([value], [x])[0]

    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    h = app.exp(x * 2.0)
    with pytest.raises(OperatorError, match=r"depends on .*, which may depend on x outside of this branch or loop"):
        network(x, h, part)


def test_gradients_inside_are_those_of_what_is_computed_inside_or_detached():
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    h = app.exp(x)
    y = cond(app.sum(x) > 0.0, lambda: static.gradients([h.detach() * x + app.exp(x) * 2.0], [x])[0], lambda: x)
    z = counted(2, lambda i, v: static.gradients([v * v * h], [v])[0], x)
    at = np.array([0.5, 1.0])
    results = static.Executor().run(feed={"x": at}, fetch_list=[y, z])
    np.testing.assert_allclose(results, [np.exp(at) * 3.0, 4.0 * at * np.exp(at) ** 2])


def test_a_detached_value_carries_no_gradient():
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    y = cond(app.sum(x) > 0, lambda: x.detach() * 2.0, lambda: x.detach())
    assert y.stop_gradient
    assert static.gradients([app.sum(y * x)], [x])[0] is not None


def overwrite(variable: Any, value: Any) -> None:
    app.ops.apply(app.ops.REGISTRY["add"], [variable, value], {}, into=[variable])


@pytest.mark.parametrize("repeats", [False, True])
def test_a_gradient_that_needs_a_value_from_before_control_flow_overwrites_it_is_refused(repeats: bool):
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    total = static.create_global_var([2], 3.0, "float64")

    def times(v: Any) -> Any:
        y = v * total
        overwrite(total, y)
        return y

    y = counted(2, lambda i, v: times(v), x) if repeats else cond(app.sum(x) > 0, lambda: times(x), lambda: x)
    with pytest.raises(InPlaceError, match=r"needs the value that global_var_0 had .*opsmith.assign\(global_var_0\)"):
        static.gradients([y], [x])


@pytest.mark.parametrize("repeats", [False, True])
def test_control_flow_may_overwrite_what_its_gradient_does_not_read(repeats: bool):
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    mean = static.create_global_var([2], 0.0, "float64")

    def square(v: Any) -> Any:
        overwrite(mean, v)
        return v * v

    y = counted(2, lambda i, v: square(v), x) if repeats else cond(app.sum(x) > 0, lambda: square(x), lambda: x)
    (dx,) = static.gradients([y], [x])
    executor = static.Executor()
    executor.run(static.default_startup_program())
    results = [v.tolist() for v in executor.run(feed={"x": np.array([1.0, 2.0])}, fetch_list=[dx, mean])]
    assert results == ([[4.0, 32.0], [2.0, 6.0]] if repeats else [[2.0, 4.0], [1.0, 2.0]])


class Clipped(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 3.0

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy * dy


def test_a_loop_with_a_gradient_that_is_not_linear_in_the_incoming_one_is_not_differentiated_twice():
    x = static.data("x", [2], "float64")
    x.stop_gradient = False
    (dx,) = static.gradients([counted(2, lambda i, v: Clipped.apply(v) * x, x)], [x])
    with pytest.raises(OperatorError, match="not linear in the incoming gradient"):
        static.gradients([dx * dx], [x])
