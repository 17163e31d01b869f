"""Choices and loops as native `if` and `while`: what is generated, what stays in Python and why, and what both give."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit

import app
from app import static
from app.custom import custom_op
from app.data import Batches
from app.engine.compiled.engine import compile_program
from app.engine.compiled.program import CompiledProgram
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


def native(fetch: list[Any]) -> CompiledProgram:
    made = compile_program(static.default_main_program(), [v.name for v in fetch])
    assert isinstance(made, CompiledProgram), made
    return made


def agree(fetch: list[Any], *feeds: np.ndarray) -> list[np.ndarray]:
    """What the compiled engine fetches, which is what the reference engine does."""
    for feed in feeds or (rows(), rows(1, 1), rows(7, 2), rows()):
        mine, expected = (
            static.Executor(engine=e).run(feed={"x": feed}, fetch_list=fetch) for e in ("compiled", "reference")
        )
        for a, b in zip(mine, expected, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    return mine


def test_the_source_has_if_and_while_and_what_is_inside_them():
    x = data()

    def step(i: Any, v: Any) -> list[Any]:
        return [i + 1, cond(app.sum(v) > 1.0, lambda: app.tanh(v), lambda: v * 2.0 + x)]

    _, y = while_loop(lambda i, v: i < 5, step, [zero(), x])
    (dx,) = static.gradients([y], [x])
    agree([y, dx])
    made = native([y, dx])
    assert made.source.is_whole
    text = made.source.text
    assert re.search(r"\n( +)while True:\n(?:\1    .*\n)+?\1    if not \w+\[0\]:\n\1        break\n", text)
    assert re.search(r"\n( +)if greater_than_out_0\[0\]:\n(?:\1    .*\n)+\1else:\n", text)
    said = static.default_main_program().explain([y, dx], source=False)
    assert "compiled: a native while" in said
    assert "compiled: a native if" in said
    assert "Python call" not in said


def test_a_program_without_data_that_loops_is_compiled():
    i, s = while_loop(lambda i, s: i < 10, lambda i, s: [i + 1, s + i], [zero(), zero()])
    assert static.Executor(engine="compiled").run(fetch_list=[i, s]) == [10, 45]
    assert native([i, s]).source.is_whole


def test_new_values_are_written_over_old_ones_where_nothing_reads_those_any_more():
    x = data()
    (y,) = while_loop(lambda v: app.sum(v) < 50.0, lambda v: [app.abs(v) * 1.5 + 1.0], [x])
    text = native([y]).source.text
    assert re.search(r" while_loop_out_0\[i0, i1\] = np.float64\(add\w*\(multiply_out_0_one, ", text)
    assert (
        len(native([y]).plan.buffers) == 4
    )  # the data side by side, the value, its sum and the truth of the condition
    agree([y])


def test_values_that_trade_places_are_put_aside_first():
    x = data()
    a, b, c, _ = while_loop(
        lambda a, b, c, i: i < 4, lambda a, b, c, i: [b, c, a + b, i + 1], [x, x * 2.0, x * 3.0, zero()]
    )
    agree([a, b, c])
    (d, e, _) = while_loop(lambda d, e, i: i < 3, lambda d, e, i: [e, d, i + 1], [x, x * 2.0, zero()])
    assert [v[0, 0] / rows()[0, 0] for v in agree([d, e])] == [2.0, 1.0]


def test_constants_in_and_out_of_branches():
    x = data()
    scale = app.full([], 3.0, "float64")
    y, z = cond(app.sum(x) > 0.0, lambda: [scale, x * scale], lambda: [app.full([], 5.0, "float64"), x])
    (w,) = cond(app.full([], True, "bool"), lambda: [x * 2.0], lambda: [x])
    agree([y, z, w], rows(), -rows())


def test_memory_is_used_again_inside():
    x = data()
    w = static.create_parameter([3, 3], "float64")

    def step(i: Any, v: Any) -> list[Any]:
        for _ in range(6):
            v = app.tanh(app.matmul(v, w))
        return [i + 1, v]

    _, y = while_loop(lambda i, v: i < 3, step, [zero(), x])
    static.Executor().run(static.default_startup_program())
    agree([y])
    assert sum(b.dtype == "float64" for b in native([y]).plan.buffers) == 4  # two besides the data and the value


def test_parameters_train_through_control_flow_in_one_native_call():
    app.seed(1)
    x = static.data("x", [-1, 3])
    hidden = cond(app.mean(x) > 0.0, lambda: static.nn.fc(x, 4, activation="tanh"), lambda: static.nn.fc(x * 0.5, 4))
    w = static.create_parameter([4, 4])
    _, y = while_loop(lambda i, v: i < 3, lambda i, v: [i + 1, app.tanh(app.matmul(v, w))], [zero(), hidden])
    loss = app.mean(y * y)
    app.optimizer.Momentum(0.1, 0.9).minimize(loss)
    images = np.random.default_rng(3).normal(size=(20, 3)).astype("float32")
    batches = Batches(images, np.zeros((20, 1), "int64"), None, 6)
    static.data("label", [-1, 1], "int64")
    static.Executor().run(static.default_startup_program())
    first = dict(static.global_scope().values)
    losses: dict[str, Any] = {}
    for engine in ("reference", "compiled"):
        scope = static.Scope()
        scope.values.update({name: value.copy() for name, value in first.items()})
        executor = static.Executor(engine=engine)
        (losses[engine],) = executor.train_from_dataset(
            static.default_main_program(), batches, ["x", "label"], [loss], scope
        )
    assert native([loss]).runs_many
    np.testing.assert_allclose(losses["compiled"], losses["reference"], rtol=1e-5)
    assert losses["compiled"][-1] < losses["compiled"][0]  # of other images, but with this seed it holds by far


# Custom operators inside


@custom_op(elementwise=True)
def bent(x: Any) -> Any:
    return x if x > 0 else 0.1 * x


@bent.backward
def _(x: Any, dy: Any) -> Any:
    return dy if x > 0 else 0.1 * dy


@njit
def doubled(x: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.size):
        out.flat[i] = 2.0 * x.flat[i]
    return out


def slowly(x: np.ndarray) -> np.ndarray:
    return np.array([[float(v) * 2.0 for v in row] for row in x.tolist()]).reshape(x.shape)


def like() -> Any:
    return static.InputSpec([-1, 3], "float64")


def test_a_compiled_custom_operator_is_part_of_the_loop():
    x = data()
    _, y = while_loop(
        lambda i, v: i < 3, lambda i, v: [i + 1, bent(v) + static.py_func(doubled, v, like())], [zero(), x]
    )
    agree([y])
    assert native([y]).source.is_whole
    assert "bent(" in native([y]).source.text


def test_one_python_call_inside_makes_all_of_the_control_flow_one_and_explain_says_which():
    x = data()

    def step(i: Any, v: Any) -> list[Any]:
        return [i + 1, cond(app.sum(v) > 0.0, lambda: static.py_func(slowly, v, like()), lambda: v + 1.0)]

    _, y = while_loop(lambda i, v: i < 3, step, [zero(), app.tanh(x)])
    agree([app.exp(y)])
    said = static.default_main_program().explain([y], source=False)
    assert re.search(
        r"Python call: operator py_func\.slowly \(test_native_control_flow\.py:\d+\) inside it: its function", said
    )


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (slowly, "native"),
        (doubled, "python"),
        pytest.param(slowly, "python", marks=pytest.mark.soak),
        pytest.param(doubled, "native", marks=pytest.mark.soak),
    ],
)
def test_what_a_loop_keeps_passes_between_compiled_code_and_python(forward: Any, backward: str):
    def back(v: Any, y: Any, dy: Any) -> Any:
        return slowly(dy) if backward == "python" else dy * 2.0

    x = data()
    _, y = while_loop(
        lambda i, v: i < 3, lambda i, v: [i + 1, app.sin(static.py_func(forward, v, like(), back)) * x], [zero(), x]
    )
    (dx,) = static.gradients([y], [x])
    agree([y, dx])


def test_what_the_other_branch_would_have_kept_is_not_missed():
    x = data()
    y = cond(
        app.sum(x) > 0.0,
        lambda: app.exp(static.py_func(slowly, x, like(), lambda v, y, dy: dy * 2.0)),
        lambda: app.tanh(x),
    )
    (dx,) = static.gradients([y * y], [x])
    agree([y, dx], rows(), -rows(), rows(3))


def test_second_derivatives_of_a_choice_are_native_and_those_of_a_loop_run_on_the_reference_engine():
    x = data()
    y = cond(app.sum(x) > 0.0, lambda: app.tanh(x) * x, lambda: x * x)
    (dx,) = static.gradients([y], [x])
    (ddx,) = static.gradients([dx * dx], [x])
    agree([ddx], rows(), -rows())
    assert native([ddx]).source.is_whole
    _, z = while_loop(lambda i, v: i < 3, lambda i, v: [i + 1, app.sin(v) * x], [zero(), x])
    (dz,) = static.gradients([z], [x])
    (ddz,) = static.gradients([dz * dz], [x])
    agree([ddz])


def test_problems_inside_are_told_with_their_reason():
    x = data()
    index = static.data("index", [-1], "int64")
    y = cond(app.sum(x) > 0.0, lambda: app.gather(x, index), lambda: app.gather(x, index) * 2.0)
    for engine in ("compiled", "reference"):
        with pytest.raises(OperatorError, match=r"operator cond.*out of bounds"):
            static.Executor(engine=engine).run(
                feed={"x": np.ones((4, 3)), "index": np.array([0, 1, 2, 4])}, fetch_list=[y]
            )


def test_what_raises_inside_is_told_with_its_operator():
    @njit
    def raising(v: Any) -> Any:
        if v.size > 3:
            raise ValueError("too many")
        return v * 2.0

    x = data()
    y = cond(app.sum(x) > 0.0, lambda: static.py_func(raising, x, like()), lambda: x)
    agree([y], np.ones((1, 3)))
    with pytest.raises(OperatorError, match=r"py_func\.raising .*its function raised ValueError: too many"):
        static.Executor(engine="compiled").run(feed={"x": np.ones((4, 3))}, fetch_list=[y])


def test_gather_is_compiled():
    x = data()
    index = static.data("index", [-1], "int64")
    y = app.gather(x, index)
    feed = {"x": rows(5), "index": np.array([4, -5, 0, 2, 1])}
    mine, expected = (static.Executor(engine=e).run(feed=feed, fetch_list=[y])[0] for e in ("compiled", "reference"))
    assert mine.tolist() == expected.tolist()
    assert native([y]).source.is_whole


def test_parts_that_call_different_functions_are_different():
    x = data()
    sums = static.py_func(slowly, x + x, like())
    squares = static.py_func(slowly, sums * sums, like())
    agree([app.tanh(squares)])
