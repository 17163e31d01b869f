"""What `py_func` says when it is used wrongly: the operator, where it was registered, what was found and expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import AppError, DtypeError, OperatorError, ShapeError
from app.static import InputSpec, py_func

F32 = "float32"
PLACE = r"\(test_py_func_errors\.py:\d+\)"


def in_program(func: Any, backward: Any = None, out: Any = None, inputs: int = 1, skip: Any = None) -> None:
    """Build, differentiate where there is a backward function, and run."""
    xs = [static.data(f"x{i}", [2]) for i in range(inputs)]
    for x in xs:
        x.stop_gradient = False
    made = py_func(func, xs, out or InputSpec([2]), backward, skip)
    fetched = [made[0] if isinstance(made, (list, tuple)) else made]
    if backward is not None:
        fetched += [g for g in static.gradients(fetched, xs) if g is not None]
    static.Executor().run(feed={x.name: np.ones(2, F32) for x in xs}, fetch_list=fetched)


def on_tensors(func: Any, backward: Any = None, out: Any = None, inputs: int = 1, skip: Any = None) -> None:
    xs = [app.to_tensor([1.0, 1.0], stop_gradient=False) for _ in range(inputs)]
    made = py_func(func, xs, out or InputSpec([2]), backward, skip)
    if backward is not None:
        (made[0] if isinstance(made, (list, tuple)) else made).backward(app.ones([2]))


both_modes = pytest.mark.parametrize("hook", [in_program, on_tensors])


def same(x: np.ndarray) -> np.ndarray:
    return x


# --- The forward function ---


@both_modes
def test_a_returned_type_other_than_the_declared_one(hook: Callable[..., None]):
    message = rf"operator py_func\.<lambda> {PLACE}: output 0 has type float64, but float32 was declared"
    with pytest.raises(DtypeError, match=message):
        hook(lambda x: x.astype("float64"))


@both_modes
def test_the_type_of_every_output_is_checked(hook: Callable[..., None]):
    with pytest.raises(DtypeError, match="output 1 has type float32, but int64 was declared"):
        hook(lambda x: (x, x), out=[InputSpec([2]), InputSpec([2], "int64")])


@both_modes
@pytest.mark.parametrize(
    ("function", "found"),
    [(lambda x: (x, x), "2 values"), (lambda x: [x, x, x], "3 values"), (lambda x: (), "0 values")],
)
def test_a_wrong_number_of_outputs(hook: Callable[..., None], function: Any, found: str):
    message = rf"operator py_func\.<lambda> {PLACE}: its function <lambda> returned {found}, expected 1"
    with pytest.raises(OperatorError, match=message):
        hook(function)


@both_modes
def test_one_output_where_two_are_declared(hook: Callable[..., None]):
    with pytest.raises(OperatorError, match=rf"py_func\.same {PLACE}: its function same returned 1 value, expected 2"):
        hook(same, out=[InputSpec([2]), InputSpec([2])])


def test_a_tap_that_returns_something():
    message = rf"py_func\.same {PLACE}: its function same returned 1 value, expected 0"
    with pytest.raises(OperatorError, match=message):
        py_func(same, app.ones([2]), None)
    py_func(same, static.data("x", [2]), None)
    with pytest.raises(OperatorError, match=message):
        static.Executor().run(feed={"x": np.ones(2, F32)})


@both_modes
@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "None"),
        ("text", r"str \(<U4\)"),
        (np.array([None]), r"ndarray \(object\)"),
        (np.ones(2, "complex64"), r"ndarray \(complex64\)"),
        ({1: 2}, r"dict \(object\)"),
    ],
)
def test_what_is_no_array_of_numbers(hook: Callable[..., None], value: Any, found: str):
    message = rf"its function <lambda> returned {found} as output 0, expected an array of bool, uint8"
    with pytest.raises(DtypeError, match=rf"operator py_func\.<lambda> {PLACE}: {message}"):
        hook(lambda x: value)


@both_modes
def test_rows_of_different_lengths(hook: Callable[..., None]):
    with pytest.raises(DtypeError, match=r"returned list \(object\) as output 0, expected an array of"):
        hook(lambda x: [[[1.0], [1.0, 2.0]]])


@both_modes
def test_an_exception_inside_the_function(hook: Callable[..., None]):
    def broken(x: np.ndarray) -> np.ndarray:
        return {}["key"]

    message = rf"operator py_func\.broken {PLACE}: its function broken raised KeyError: 'key'"
    with pytest.raises(OperatorError, match=message):
        hook(broken)


@both_modes
def test_an_error_of_the_framework_inside_the_function_keeps_its_kind(hook: Callable[..., None]):
    def nested(x: np.ndarray) -> np.ndarray:
        return (app.to_tensor(x) + app.ones([5])).numpy()

    with pytest.raises(ShapeError, match=rf"py_func\.nested {PLACE}: in its function nested: operator add of"):
        hook(nested)


@both_modes
def test_a_function_that_takes_another_number_of_inputs(hook: Callable[..., None]):
    with pytest.raises(
        OperatorError, match=rf"py_func\.same {PLACE}: its function same raised TypeError: .*2 were given"
    ):
        hook(same, inputs=2)


# --- The backward function ---


@both_modes
def test_a_gradient_of_the_wrong_shape(hook: Callable[..., None]):
    message = r"the gradient of x has shape \[2, 1\], expected that of x, \[2\]"
    with pytest.raises(ShapeError, match=rf"the gradient of operator py_func\.same {PLACE}: {message}"):
        hook(same, lambda x, y, dy: dy[:, None])


@both_modes
def test_a_gradient_of_the_wrong_type(hook: Callable[..., None]):
    message = "the gradient of x has type float64, expected that of x, float32"
    with pytest.raises(DtypeError, match=rf"the gradient of operator py_func\.same {PLACE}: {message}"):
        hook(same, lambda x, y, dy: dy.astype("float64"))


@both_modes
@pytest.mark.parametrize(
    ("backward", "found"), [(lambda *_: _[-1], "1 value"), (lambda *_: (_[-1], _[-1], None), "3 values")]
)
def test_a_wrong_number_of_gradients(hook: Callable[..., None], backward: Any, found: str):
    message = rf"its function <lambda> returned {found}, expected 2"
    with pytest.raises(OperatorError, match=rf"the gradient of operator py_func\.<lambda> {PLACE}: {message}"):
        hook(lambda a, b: a + b, backward, inputs=2)


@both_modes
def test_a_gradient_that_is_no_array(hook: Callable[..., None]):
    with pytest.raises(DtypeError, match=rf"the gradient of operator py_func\.same {PLACE}: .* returned str"):
        hook(same, lambda x, y, dy: "dy")


@both_modes
def test_an_exception_inside_the_backward_function(hook: Callable[..., None]):
    def wrong(x: Any, y: Any, dy: Any) -> Any:
        raise ZeroDivisionError("by hand")

    message = rf"the gradient of operator py_func\.same {PLACE}: its function wrong raised ZeroDivisionError: by hand"
    with pytest.raises(OperatorError, match=message):
        hook(same, wrong)


@both_modes
def test_a_backward_function_that_takes_other_values(hook: Callable[..., None]):
    message = rf"the gradient of operator py_func\.same {PLACE}: its function <lambda> raised TypeError"
    with pytest.raises(OperatorError, match=message):
        hook(same, lambda dy: dy)


def opaque(x: np.ndarray, y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return 2 * np.ascontiguousarray(x) * dy


def test_a_second_derivative_is_refused():
    x = app.to_tensor([1.0], stop_gradient=False)
    y = py_func(np.square, x, InputSpec([1]), opaque)
    (g,) = app.grad(y, x, create_graph=True)
    with pytest.raises(OperatorError, match=rf"operator py_func\.square {PLACE} cannot be differentiated twice"):
        g.backward()


def test_a_second_derivative_is_refused_while_a_program_is_built():
    x = static.data("x", [1])
    x.stop_gradient = False
    (g,) = static.gradients(py_func(np.square, x, InputSpec([1]), opaque), x)
    with pytest.raises(OperatorError, match="cannot be differentiated twice"):
        static.gradients(g + x * x, x)


# --- Registration ---


@both_modes
@pytest.mark.parametrize("what", [3, "tanh", None, [np.tanh]])
def test_what_is_no_function_is_refused_at_once(hook: Callable[..., None], what: Any):
    with pytest.raises(OperatorError, match=rf"operator py_func {PLACE}: func must be a function, found .*\("):
        hook(what)


@both_modes
@pytest.mark.parametrize("what", [3, [np.tanh]])
def test_a_backward_function_that_is_none_is_refused_at_once(hook: Callable[..., None], what: Any):
    with pytest.raises(OperatorError, match=rf"py_func\.same {PLACE}: backward_func must be a function, found"):
        hook(same, what)


@both_modes
def test_skipping_what_is_neither_input_nor_output(hook: Callable[..., None]):
    other = static.data("other", [2])
    message = rf"operator py_func\.same {PLACE}: skip_vars_in_backward_input names other, which is neither one of its"
    with pytest.raises(OperatorError, match=message):
        hook(same, lambda x, y, dy: dy, skip=other)


@both_modes
def test_an_output_that_does_not_say_its_shape_and_type(hook: Callable[..., None]):
    with pytest.raises(
        OperatorError, match=rf"py_func\.same {PLACE}: out must have a shape and a dtype, .*; found 'y' \(str\)"
    ):
        hook(same, out="y")


def test_a_tensor_and_a_variable_cannot_be_mixed():
    x, t = static.data("x", [2]), app.ones([2])
    with pytest.raises(AppError, match="a Tensor cannot be an input of an operator in a Program"):
        py_func(lambda a, b: a, [x, t], InputSpec([2]))


def test_an_output_that_is_an_input_has_no_right_gradient():
    x = static.data("x", [2])
    h = x * 2.0
    message = rf"operator py_func\.square {PLACE}: {h.name} is both input and output"
    with pytest.raises(OperatorError, match=message):
        py_func(np.square, h, h, lambda x, y, dy: 2 * x * dy)
    t = app.ones([2])
    with pytest.raises(OperatorError, match=rf"operator py_func\.square {PLACE}: output 0 is both input and output"):
        py_func(np.square, t, t, lambda x, y, dy: 2 * x * dy)


def test_an_output_may_be_an_input_where_there_is_no_gradient():
    state = static.default_main_program().global_block().create_var("count", [], "int64", persistable=True)
    static.global_scope().var("count").set(np.array(5))
    py_func(lambda n: n + 1, state, state)
    executor = static.Executor()
    assert [int(executor.run(fetch_list=["count"])[0]) for _ in range(3)] == [6, 7, 8]


def test_the_place_is_that_of_the_call_and_not_of_an_earlier_one():
    def hooked_here(x: Any) -> Any:
        return py_func(same, x, InputSpec([2], "int64"))

    def hooked_there(x: Any) -> Any:
        return py_func(same, x, InputSpec([2], "int64"))

    places = []
    for hook in (hooked_here, hooked_there):
        with pytest.raises(DtypeError) as caught:
            hook(app.ones([2]))
        places.append(str(caught.value).partition(":")[2].partition(")")[0])
    assert places == [str(f.__code__.co_firstlineno + 1) for f in (hooked_here, hooked_there)]
