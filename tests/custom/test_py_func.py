"""`py_func`, as documented: the same calls in a Program and on Tensors.

`mode` is one call of py_func in either mode: it makes the inputs and outputs, and runs forward and backward.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numba import njit

import app
from app import static
from app.errors import AppError, DtypeError, OperatorError, ShapeError
from app.static import InputSpec, py_func

F32 = "float32"

# --- Inputs and outputs ---


@pytest.mark.parametrize("kind", [list, tuple])
def test_several_inputs_and_outputs_are_lists_or_tuples(mode: Any, kind: type):
    inputs = kind([mode.input([1.0, 2.0]), mode.input([10.0, 20.0]), np.array([0.5, 0.5], F32)])
    outs = kind([mode.output([2]), mode.output([1], "int64")])
    result = py_func(lambda a, b, c: ((a + b) * c, np.array([a.size])), inputs, outs)
    assert type(result) is kind
    assert all(r is o for r, o in zip(result, outs, strict=True))
    total, size = mode.values(*result)
    np.testing.assert_array_equal(total, [5.5, 11])
    assert (size, size.dtype) == (2, "int64")


def test_outputs_can_be_declared_by_specs_and_arrays(mode: Any):
    x = mode.input([1.0, 2.0])
    a, b = py_func(lambda v: (v + 1, v.astype("int32")), x, [InputSpec([2]), np.zeros(2, "int32")])
    assert type(a) is type(x)
    assert [v.dtype.name for v in mode.values(a, b)] == ["float32", "int32"]


@njit
def halves(x: Any) -> Any:
    return x * 0.5


@njit
def halves_in_a_loop(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.size):
        y.flat[i] = x.flat[i] * 0.5
    return y


@njit
def signs(x: Any) -> Any:
    return (x > 0) * 2 - 1


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize(
    ("function", "dtype", "declared", "expected"),
    [
        (halves, "float32", "float32", [-1.5, 1.5, 2.5]),  # it returns float64
        (halves, "int32", "float32", [-1.5, 1.5, 2.5]),
        (halves_in_a_loop, "int32", "float32", [-1, 1, 2]),  # in integers
        (halves_in_a_loop, "float64", "float32", [-1.5, 1.5, 2.5]),
        (signs, "float32", "float32", [-1, 1, 1]),
        (lambda x: x > 0, "int32", "float64", [0, 1, 1]),
        (signs, "float32", "int64", [-1, 1, 1]),
        (halves, "int32", "int32", None),
        (signs, "float32", "bool", None),
        (signs, "float32", "int32", None),
    ],
)
def test_numbers_become_floats_of_the_declared_type_and_nothing_else(
    engine: str, function: Any, dtype: str, declared: str, expected: Any
):
    data = np.array([-3, 3, 5], dtype)
    x = static.data("x", [None], dtype)
    out = py_func(function, x, static.default_main_program().current_block().create_var("out", [-1], declared))
    executor = static.Executor(engine=engine)
    if expected is None:
        with pytest.raises(DtypeError, match=f"but {declared} was declared"):
            executor.run(feed={"x": data}, fetch_list=[out])
        return
    (result,) = executor.run(feed={"x": data}, fetch_list=[out])
    np.testing.assert_array_equal(result, np.array(expected, declared), strict=True)


def test_a_function_without_inputs_is_called_in_every_run():
    x, out = static.data("x", [2]), static.default_main_program().current_block().create_var(shape=[2])
    counter = iter(range(9))
    py_func(lambda: np.full(2, next(counter), F32), None, out)
    y = x + out
    values = [static.Executor().run(feed={"x": np.ones(2, F32)}, fetch_list=[y])[0] for _ in range(3)]
    np.testing.assert_array_equal(values, [[1, 1], [2, 2], [3, 3]])


def test_without_tensors_and_variables_the_mode_decides():
    seen: list[str] = []
    py_func(lambda: seen.append("eager"), None, None)
    assert seen == ["eager"]
    assert isinstance(py_func(lambda: np.ones(1, F32), None, InputSpec([1])), app.Tensor)
    app.enable_static()
    try:
        py_func(lambda: seen.append("run"), None, None)
        out = py_func(lambda: np.ones(1, F32), None, InputSpec([1]))
    finally:
        app.disable_static()
    assert seen == ["eager"]
    assert static.Executor().run(fetch_list=[out])[0] == 1
    assert seen == ["eager", "run"]


def test_a_function_without_outputs_runs_though_nothing_depends_on_it(mode: Any):
    seen: list[Any] = []
    x = mode.input([1.0, 2.0])
    y = x * x
    assert py_func(lambda a, b: seen.extend([a.copy(), b.copy()]), [x, y], None) is None
    np.testing.assert_array_equal(mode.gradients(y, [x])[0], [2, 4])
    np.testing.assert_array_equal(seen, [[1, 2], [1, 4]])


# --- What the function gets ---


def test_the_function_gets_numpy_arrays(mode: Any):
    def look(x: Any, whole: Any, scalar: Any) -> np.ndarray:
        assert {type(v) for v in (x, whole, scalar)} == {np.ndarray}
        assert np.array(x).tolist() == [[1.0, 2.0]]
        assert (x.shape, whole.dtype.name, scalar.shape) == ((1, 2), "int64", ())
        return np.array(x) + x

    x = mode.input([[1.0, 2.0]])
    out = py_func(look, [x, mode.input([3], stop_gradient=True), app.mean(x)], mode.output([1, 2]))
    np.testing.assert_array_equal(mode.values(out)[0], [[2, 4]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8", "bool"])
def test_values_keep_their_type(mode: Any, dtype: str):
    array = np.array([0, 1, 1]).astype(dtype)
    (result,) = mode.values(py_func(lambda v: v[::-1], mode.input(array), mode.output([3], dtype)))
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, array[::-1])


@dataclass
class Scale:
    """Not hashable, as it compares by value."""

    factor: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x * np.float32(self.factor)

    def slope(self, x: np.ndarray, y: np.ndarray, dy: np.ndarray) -> np.ndarray:
        return dy * np.float32(self.factor)


@dataclass(unsafe_hash=True)
class HashableScale(Scale):
    """Equal to one with another factor, so a cache may take one for the other."""

    factor: float = field(compare=False)


@pytest.mark.parametrize("kind", [Scale, HashableScale])
def test_functions_can_be_any_callables(mode: Any, kind: type):
    x = mode.input([1.0])
    y, z = (py_func(scale, x, mode.output([1]), scale.slope) for scale in (kind(2), kind(3)))
    assert mode.values(y, z) == [2, 3]
    assert [mode.gradients(v, [x]) for v in (y, z)] == [[2], [3]]
    assert mode.values(*(py_func(kind(factor), x, mode.output([1])) for factor in (2, 3))) == [2, 3]


@pytest.mark.parametrize(("declared", "warned"), [([-1, 3], []), ([3, 1], ["[2, 3], but [3, 1] was declared"])])
def test_a_result_of_another_shape_than_declared_is_used_with_one_warning(declared: list[int], warned: list[str]):
    x = static.data("x", [None, 3], "int32")
    py_func(np.negative, x, static.default_main_program().current_block().create_var("out", declared, "int32"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for rows in (2, 2, 4):
            feed = {"x": np.ones((rows, 3), "int32")}
            (result,) = static.Executor().run(feed=feed, fetch_list=["out"])
            np.testing.assert_array_equal(result, np.full((rows, 3), -1))
    messages = [str(warning.message) for warning in caught]
    assert [message.partition("has shape ")[2].partition(";")[0] for message in messages] == warned
    assert all("py_func.negative (test_py_func.py:" in message for message in messages)
    assert result.dtype == np.int32


# --- The backward function ---


def recorded(seen: list[Any], result: Callable[..., Any]) -> Callable[..., Any]:
    """A backward function that keeps what it is given."""

    def backward(*arguments: Any) -> Any:
        seen.append(arguments)
        return result(*arguments)

    return backward


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        ([], [1, 2, 3, 4]),
        (["x"], [2, 3, 4]),
        (["a"], [1, 2, 4]),
        (("b", "x"), [2, 3]),
        (["x", "z", "a", "b"], []),
    ],
)
def test_skipped_variables_are_not_passed_to_backward(mode: Any, skip: Any, expected: list[int]):
    seen: list[Any] = []
    values = {"x": mode.input([1.0]), "z": mode.input([2.0]), "a": mode.output([1]), "b": mode.output([1])}
    py_func(
        lambda x, z: (x + z, x + z + 1),
        [values["x"], values["z"]],
        [values["a"], values["b"]],
        recorded(seen, lambda *arguments: (arguments[-2], arguments[-1])),
        type(skip)(values[name] for name in skip),
    )
    mode.gradients(values["a"] * 7.0 + values["b"] * 8.0, [values["x"], values["z"]])
    assert [v.item() for v in seen[0]] == [*expected, 7, 8]


def test_an_input_that_is_given_twice_is_skipped_twice(mode: Any):
    seen: list[Any] = []
    x, y = mode.input([2.0]), mode.output([1])
    py_func(lambda a, b: a * b, [x, x], y, recorded(seen, lambda y, dy: (2 * dy, 2 * dy)), x)
    assert mode.gradients(y, [x])[0] == 4
    assert [v.item() for v in seen[0]] == [4, 1]


def test_backward_gets_zeros_for_an_output_without_gradient(mode: Any):
    seen: list[Any] = []
    x = mode.input([1.0, 2.0])
    backward = recorded(seen, lambda x, a, b, da, db: db * 3)
    _, b = py_func(lambda v: (v, v * 3), x, [mode.output([2]), mode.output([2])], backward)
    np.testing.assert_array_equal(mode.gradients(b, [x])[0], [3, 3])
    np.testing.assert_array_equal(seen[0][3:], [[0, 0], [1, 1]])


def test_a_gradient_has_the_type_of_its_input(mode: Any):
    x = mode.input([1.0, 2.0])
    y = py_func(lambda v: v * 3, x, mode.output([2]), lambda x, y, dy: 3 * dy.astype("float64"))
    (gradient,) = mode.gradients(y, [x])
    assert gradient.dtype == "float32"
    np.testing.assert_array_equal(gradient, [3, 3])


def test_backward_returns_none_for_an_input_without_gradient(mode: Any):
    x, index = mode.input([1.0, 2.0, 3.0]), mode.input([2, 0], stop_gradient=True)

    def backward(x: Any, index: Any, y: Any, dy: Any) -> Any:
        dx = np.zeros_like(x)
        dx[index] = dy
        return dx, None

    y = py_func(lambda x, index: x[index], [x, index], mode.output([2]), backward)
    np.testing.assert_array_equal(mode.gradients(y * y, [x])[0], [2, 0, 6])


def test_integer_outputs_have_no_gradient(mode: Any):
    x = mode.input([1.0, 2.0])
    whole, y = py_func(
        lambda v: (v.astype("int32"), v), x, [mode.output([2], "int32"), mode.output([2])], lambda *args: args[-1]
    )
    assert whole.stop_gradient
    assert not y.stop_gradient
    np.testing.assert_array_equal(mode.gradients(app.cast(whole, F32) * y, [x])[0], [1, 2])


def test_gradients_stop_without_a_backward_function_and_without_inputs_that_want_them(mode: Any):
    seen: list[Any] = []
    fixed, x = mode.input([1.0], stop_gradient=True), mode.input([2.0])
    first = py_func(lambda v: v * 2, fixed, mode.output([1]), recorded(seen, lambda x, y, dy: dy))
    second = py_func(lambda v: v * 2, x, mode.output([1]))
    assert first.stop_gradient
    assert second.stop_gradient
    assert mode.gradients(first * second * x, [x])[0] == 8
    assert not seen


# --- The first program of the documentation ---


def test_a_network_trains_with_tanh_and_a_debugging_function():
    printed: list[np.ndarray] = []

    def tanh(x: Any) -> Any:
        return np.tanh(x)

    def tanh_grad(y: Any, dy: Any) -> Any:
        return np.array(dy) * (1 - np.square(np.array(y)))

    def debug_func(x: Any) -> None:
        printed.append(x)

    def simple_net(img: Any, label: Any) -> Any:
        hidden = img
        for idx in range(4):
            hidden = static.nn.fc(hidden, size=200)
            block = static.default_main_program().current_block()
            new_hidden = block.create_var(name=f"hidden_{idx}", dtype=hidden.dtype, shape=hidden.shape)
            hidden = static.py_func(
                func=tanh, x=hidden, out=new_hidden, backward_func=tanh_grad, skip_vars_in_backward_input=hidden
            )
            static.py_func(func=debug_func, x=hidden, out=None)
        prediction = static.nn.fc(hidden, size=10, activation="softmax")
        ce_loss = app.nn.CrossEntropyLoss()
        return ce_loss(prediction, label)

    x = static.data(name="x", shape=[1, 4], dtype="float32")
    y = static.data(name="y", shape=[1], dtype="int64")
    res = simple_net(x, y)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    input1 = np.random.random(size=[1, 4]).astype("float32")
    input2 = np.random.randint(1, 10, size=[1], dtype="int64")
    out = exe.run(static.default_main_program(), feed={"x": input1, "y": input2}, fetch_list=[res.name])
    assert 1.4 < out[0] < 2.5
    assert [p.shape for p in printed] == [(1, 200)] * 4

    app.optimizer.SGD(0.5).minimize(res)
    exe.run(static.default_startup_program())
    losses = [exe.run(feed={"x": input1, "y": input2}, fetch_list=[res])[0] for _ in range(30)]
    assert losses[-1] < losses[0] - 0.3
    exe.run(static.default_main_program().clone(for_test=True), feed={"x": input1, "y": input2}, fetch_list=[res])
    assert len(printed) == 4 * 32


# --- Errors: they name the operator, where it was registered, what was found and expected ---

PLACE = r"\(test_py_func\.py:\d+\)"


def differentiate(
    mode: Any, func: Any, backward: Any = None, out: Any = None, inputs: int = 1, skip: Any = None
) -> None:
    """Apply, and differentiate where there is a backward function."""
    xs = [mode.input([1.0, 1.0]) for _ in range(inputs)]
    results = py_func(func, xs, out or InputSpec([2]), backward, skip)
    first = results[0] if isinstance(results, list) else results
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


@pytest.mark.parametrize(("function", "settings", "kind", "message"), FORWARD)
def test_errors_and_wrong_results_of_the_function_name_the_operator(
    mode: Any, function: Any, settings: Any, kind: Any, message: str
):
    with pytest.raises(kind, match=message):
        differentiate(mode, function, **settings)


def test_the_cause_of_an_error_is_what_the_function_raised():
    with pytest.raises(OperatorError, match="KeyError: 'key'") as raised:
        py_func(broken, app.ones([2]), InputSpec([2]))
    assert type(raised.value) is OperatorError
    assert isinstance(raised.value.__cause__, KeyError)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_a_function_without_outputs_must_return_nothing():
    message = SAME + "its function same returned 1 value, expected 0"
    with pytest.raises(OperatorError, match=message):
        py_func(same, app.ones([2]), None)
    py_func(same, static.data("x", [2]), None)
    with pytest.raises(OperatorError, match=message):
        static.Executor().run(feed={"x": np.ones(2, F32)})


BACKWARD = [
    (lambda x, y, dy: dy[:, None], 1, ShapeError, r"the gradient of x has shape \[2, 1\], expected that of x, \[2\]"),
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


@pytest.mark.parametrize(("settings", "message"), REGISTERED)
def test_wrong_arguments_are_errors(mode: Any, settings: dict[str, Any], message: str):
    skip = settings["skip"]() if "skip" in settings else None
    with pytest.raises(OperatorError, match=message):
        differentiate(mode, **{**settings, "skip": skip})


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
        with pytest.raises(DtypeError, match=rf"\(test_py_func.py:{call.__code__.co_firstlineno}\)"):
            call(app.ones([2]))
