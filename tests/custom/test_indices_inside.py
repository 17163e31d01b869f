"""A Numba function on arrays of different shapes that indexes outside of one is an error, in every mode and engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import app
from app import static
from app.errors import OperatorError
from app.jit import to_static

OUTSIDE = r"its function scaled: index is out of bounds, given arrays of shapes \[\d, 3\] and \[2, 3\]"


@njit
def scaled(x, w):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * w[i, j]
    return y


@njit
def projected(x, w):
    y = np.zeros((x.shape[0], w.shape[0]))
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            for k in range(w.shape[1]):
                y[i, j] += x[i, k] * w[j, k]
    return y


def ones(*shape: int) -> app.Tensor:
    return app.to_tensor(np.ones(shape))


def shaped(rows: int) -> Any:
    return static.InputSpec([rows, 3], "float64")


@pytest.mark.parametrize("row_by_row", [False, True])
def test_an_input_with_fewer_rows_is_an_error(row_by_row: bool):
    operator = app.custom_op(row_by_row=row_by_row)(scaled)
    assert operator(ones(2, 3), ones(2, 3)).tolist() == np.ones((2, 3)).tolist()
    for _ in range(2):  # the second time, too
        with pytest.raises(OperatorError, match=OUTSIDE):
            operator(ones(5, 3), ones(2, 3))


def test_an_input_with_fewer_rows_is_an_error_in_py_func():
    with pytest.raises(OperatorError, match=OUTSIDE):
        static.py_func(scaled, [ones(5, 3), ones(2, 3)], shaped(5), row_by_row=True)


def run(hook: str, engine: str) -> None:
    """Run a Program in which the operator gets an open number of rows, and two."""
    program, w = static.Program(), np.ones((2, 3))
    with static.program_guard(program):
        x = static.data("x", [-1, 3], "float64")
        if hook == "py_func":
            y = static.py_func(scaled, [x, w], shaped(-1), row_by_row=True)
        else:
            y = app.custom_op(row_by_row=True, infer=(lambda x, w: x) if hook == "infer" else None)(scaled)(x, w)
    static.Executor(engine=engine).run(program, {"x": np.ones((5, 3))}, [y])


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("hook", ["custom_op", "infer", "py_func"])
def test_an_input_with_fewer_rows_is_an_error_in_a_program(hook: str, engine: str):
    with pytest.raises(OperatorError, match=r"scaled.*index is out of bounds"):
        run(hook, engine)


def test_an_input_with_fewer_rows_is_an_error_in_a_traced_function():
    operator = app.custom_op(row_by_row=True)(scaled)
    with pytest.raises(OperatorError, match=OUTSIDE):
        to_static(lambda x: operator(x, ones(2, 3)))(ones(5, 3))


def test_a_weight_may_have_any_number_of_rows():
    operator = app.custom_op(row_by_row=True)(projected)
    assert operator(ones(5, 3), ones(2, 3)).tolist() == np.full((5, 2), 3.0).tolist()
