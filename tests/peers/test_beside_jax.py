"""Control flow, derived once and twice, beside JAX, which derives its own.

JAX is no part of the development set-up; `pip install -e .[bench]` brings it, and without it these are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.graph import static_mode

jax: Any = pytest.importorskip("jax", reason="JAX is not installed")


@pytest.fixture(autouse=True)
def _double_precision() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def choice(x: Any) -> Any:
    return static.nn.cond(app.sum(x) > 0.5, lambda: app.sin(x) * x, lambda: app.exp(x))


def choice_there(x: Any) -> Any:
    return jax.lax.cond(x.sum() > 0.5, lambda x: jax.numpy.sin(x) * x, jax.numpy.exp, x)


def loop(x: Any) -> Any:
    (y,) = static.nn.while_loop(lambda y: app.sum(y * y) < 50.0, lambda y: [y * y * 0.5 + app.cos(x) + y], [x])
    return y


def loop_there(x: Any) -> Any:
    return jax.lax.while_loop(lambda y: (y * y).sum() < 50.0, lambda y: y * y * 0.5 + jax.numpy.cos(x) + y, x)


def nested(x: Any) -> Any:
    def turn(i: Any, y: Any) -> Any:
        return [i + 1, static.nn.cond(i % 2 == 0, lambda: app.tanh(y) + x, lambda: y * x)]

    _, y = static.nn.while_loop(lambda i, y: i < 5, turn, [app.zeros([], "int64"), x])
    return y


def nested_there(x: Any) -> Any:
    def turn(i: Any, y: Any) -> Any:
        return jax.lax.cond(i % 2 == 0, lambda: jax.numpy.tanh(y) + x, lambda: y * x)

    return jax.lax.fori_loop(0, 5, turn, x)


PAIRS = {"choice": (choice, choice_there), "loop": (loop, loop_there), "nested": (nested, nested_there)}
GIVEN = {"choice": ([0.4, 0.9], [0.1, -0.7]), "loop": ([0.3, 0.8],), "nested": ([0.5, -1.5],)}


def here(build: Callable[[Any], Any], given: np.ndarray, engine: str) -> list[np.ndarray]:
    """The value, the gradient of its sum, and the gradient of the sum of that one's squares."""
    scope = static.scope_guard(static.Scope())
    with static.program_guard(static.Program(), static.Program()), scope, static_mode():
        x = static.data("x", [2], "float64")
        x.stop_gradient = False
        y = build(x)
        (first,) = static.gradients([app.sum(y)], [x])
        (second,) = static.gradients([app.sum(first * first)], [x])
        return static.Executor(engine=engine).run(feed={"x": given}, fetch_list=[y, first, second])


def there(function: Callable[[Any], Any], given: np.ndarray) -> list[np.ndarray]:
    # Forwards, as JAX has no reverse derivative of a while_loop.
    first = jax.jacfwd(lambda x: function(x).sum())
    second = jax.jacfwd(lambda x: (first(x) ** 2).sum())
    return [np.asarray(each(given)) for each in (function, first, second)]


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("name", PAIRS)
def test_control_flow_and_both_derivatives_are_those_of_jax(name: str, engine: str):
    ours, theirs = PAIRS[name]
    for numbers in GIVEN[name]:
        given = np.array(numbers)
        for found, expected in zip(here(ours, given, engine), there(theirs, given), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9)
