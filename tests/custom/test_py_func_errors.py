"""Errors of `py_func`: they name the operator, where it was registered, what was found and what was expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import AppError, DtypeError, OperatorError, ShapeError
from app.static import InputSpec, py_func

F32 = "float32"
PLACE = r"\(test_py_func_errors\.py:\d+\)"


def differentiate(
    mode: Any, func: Any, backward: Any = None, out: Any = None, inputs: int = 1, skip: Any = None
) -> None:
    """Apply, and differentiate where there is a backward function."""
    xs = [mode.input([1.0, 1.0]) for _ in range(inputs)]
    made = py_func(func, xs, out or InputSpec([2]), backward, skip)
    first = made[0] if isinstance(made, list) else made
    mode.values(first)
    if backward is not None:
        mode.gradients(first, xs)


def same(x: np.ndarray) -> np.ndarray:
    return x


def broken(x: np.ndarray) -> np.ndarray:
    return {}["key"]


def nested(x: np.ndarray) -> np.ndarray:
    return (app.to_tensor(x) + app.ones([5])).numpy()


def raises(x: Any, y: Any, dy: Any) -> Any:
    raise ZeroDivisionError("by hand")


TWO = {"out": [InputSpec([2]), InputSpec([2], "int64")]}
LAMBDA = rf"operator py_func\.<lambda> {PLACE}: "
SAME = rf"operator py_func\.same {PLACE}: "
RETURNED = LAMBDA + "its function <lambda> returned "
NUMBERS = " as output 0, expected an array of bool, uint8"

FORWARD = [
    (lambda x: x.astype("float64"), {}, DtypeError, LAMBDA + "output 0 has type float64, but float32 was declared"),
    (lambda x: (x, x), TWO, DtypeError, "output 1 has type float32, but int64 was declared"),
    (lambda x: (x, x), {}, OperatorError, RETURNED + "2 values, expected 1"),
    (lambda x: (), {}, OperatorError, RETURNED + "0 values, expected 1"),
    (same, TWO, OperatorError, SAME + "its function same returned 1 value, expected 2"),
    (lambda x: None, {}, DtypeError, RETURNED + "None" + NUMBERS),
    (lambda x: np.array([None]), {}, DtypeError, RETURNED + r"ndarray \(object\)" + NUMBERS),
    (lambda x: [[[1.0], [1.0, 2.0]]], {}, DtypeError, RETURNED + r"list \(object\)" + NUMBERS),
    (broken, {}, OperatorError, rf"operator py_func\.broken {PLACE}: its function broken raised KeyError: 'key'"),
    (nested, {}, ShapeError, rf"py_func\.nested {PLACE}: in its function nested: operator add of"),
    (same, {"inputs": 2}, OperatorError, SAME + "its function same raised TypeError: .*2 were given"),
]


@pytest.mark.parametrize(("function", "given", "kind", "message"), FORWARD)
def test_errors_and_wrong_results_of_the_function_name_the_operator(
    mode: Any, function: Any, given: Any, kind: Any, message: str
):
    with pytest.raises(kind, match=message):
        differentiate(mode, function, **given)


def test_a_function_without_outputs_must_return_nothing():
    message = SAME + "its function same returned 1 value, expected 0"
    with pytest.raises(OperatorError, match=message):
        py_func(same, app.ones([2]), None)
    py_func(same, static.data("x", [2]), None)
    with pytest.raises(OperatorError, match=message):
        static.Executor().run(feed={"x": np.ones(2, F32)})


BACKWARD = [
    (lambda x, y, dy: dy[:, None], 1, ShapeError, r"the gradient of x has shape \[2, 1\], expected that of x, \[2\]"),
    (lambda x, y, dy: dy.astype("float64"), 1, DtypeError, "x has type float64, expected that of x, float32"),
    (lambda *_: _[-1], 2, OperatorError, "its function <lambda> returned 1 value, expected 2"),
    (lambda x, y, dy: "dy", 1, DtypeError, "its function <lambda> returned str"),
    (raises, 1, OperatorError, "its function raises raised ZeroDivisionError: by hand"),
    (lambda dy: dy, 1, OperatorError, "its function <lambda> raised TypeError"),
]


@pytest.mark.parametrize(("backward", "inputs", "kind", "message"), BACKWARD)
def test_errors_and_wrong_results_of_the_backward_function_name_the_operator(
    mode: Any, backward: Any, inputs: int, kind: Any, message: str
):
    with pytest.raises(kind, match=rf"the gradient of operator py_func\.<lambda> {PLACE}: .*{message}"):
        differentiate(mode, lambda *xs: xs[0] + 1, backward, inputs=inputs)


# --- Registration ---

NO_FUNCTION = rf"operator py_func {PLACE}: func must be a function, found .*\("
NO_BACKWARD = SAME + "backward_func must be a function, found"
REGISTERED = [
    *(({"func": func}, NO_FUNCTION) for func in (3, None, [np.tanh])),
    *(({"func": same, "backward": backward}, NO_BACKWARD) for backward in (3, [np.tanh])),
    ({"func": same, "out": "y"}, SAME + r"out must have a shape and a dtype, .*; found 'y' \(str\)"),
    (
        {"func": same, "backward": lambda x, y, dy: dy, "skip": lambda: static.data("other", [2])},
        SAME + "skip_vars_in_backward_input names other, which is neither one of its",
    ),
]


@pytest.mark.parametrize(("given", "message"), REGISTERED)
def test_wrong_arguments_are_errors(mode: Any, given: dict[str, Any], message: str):
    skip = given["skip"]() if "skip" in given else None
    with pytest.raises(OperatorError, match=message):
        differentiate(mode, **{**given, "skip": skip})


def test_a_tensor_and_a_variable_cannot_be_mixed():
    x, t = static.data("x", [2]), app.ones([2])
    with pytest.raises(AppError, match="a Tensor cannot be an input of an operator in a Program"):
        py_func(lambda a, b: a, [x, t], InputSpec([2]))


def test_an_output_that_is_an_input_is_an_error_with_a_backward():
    h, t = static.data("x", [2]) * 2.0, app.ones([2])
    for value, name in ((h, h.name), (t, "output 0")):
        with pytest.raises(OperatorError, match=rf"operator py_func\.square {PLACE}: {name} is both input and output"):
            py_func(np.square, value, value, lambda x, y, dy: 2 * x * dy)


def test_an_output_may_be_an_input_without_a_backward():
    state = static.default_main_program().global_block().create_var("count", [], "int64", persistable=True)
    static.global_scope().var("count").set(np.array(5))
    py_func(lambda n: n + 1, state, state)
    executor = static.Executor()
    assert [int(executor.run(fetch_list=["count"])[0]) for _ in range(3)] == [6, 7, 8]


def test_errors_name_the_line_of_their_own_call():
    calls = [lambda x: py_func(same, x, InputSpec([2], "int64"))]
    calls += [lambda x: py_func(same, x, InputSpec([2], "int64"))]
    for call in calls:
        with pytest.raises(DtypeError, match=rf"\(test_py_func_errors.py:{call.__code__.co_firstlineno}\)"):
            call(app.ones([2]))
