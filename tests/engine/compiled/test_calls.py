"""A Program in parts that are called singly, over and over: what one batch is made of, for measuring it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app.engine import Executor, Scope
from app.engine.compiled.program import CompiledProgram
from app.graph import Program, names, program_guard, static_mode

pytestmark = pytest.mark.slow


def built(operator: Any) -> tuple[Program, list[str]]:
    main = Program()
    with names.guard(), program_guard(main, Program()), static_mode():
        x = app.static.data("x", [None, 4])
        x.stop_gradient = False
        y = operator(x)
        (dx,) = app.static.gradients([y], [x])
    return main, [y.name, dx.name]


@app.custom_op
def opaque(x: np.ndarray) -> np.ndarray:
    return np.sort(x, axis=0)[::-1] * 2.0  # sorting along an axis is beyond Numba


@opaque.backward
def opaque_grad(x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return dy * 2.0 + 0.0 * np.sort(x, axis=0)


@pytest.mark.parametrize(
    "operator", [app.tanh, lambda x: app.tanh(opaque(x * 3.0)) + x], ids=["compiled", "Python calls between"]
)
def test_repeated_calls_read_changed_data(operator: Any):
    program, fetch = built(operator)
    native = CompiledProgram(program, fetch, whole=False)
    assert not native.source.is_whole
    x = np.random.default_rng(0).standard_normal((5, 4), np.float32)
    calls, values = native.calls({"x": x}, Scope())
    assert len(calls) > (3 if operator is not app.tanh else 0)
    for _ in range(2):
        for name, value in zip(fetch, Executor().run(program, {"x": x}, fetch, scope=Scope()), strict=True):
            np.testing.assert_allclose(values[name], value, rtol=1e-5, atol=1e-6)
        if operator is app.tanh:
            x += 1.0
        for call in calls:
            call()
