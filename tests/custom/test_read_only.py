"""The arrays that an operator gets are read-only: a function that writes into them is an error, or gets a copy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from modules_of_text import module_of_text
from numba import float64, guvectorize, njit

import app
from app import static
from app.custom.read_only import inputs_watched
from app.errors import OperatorError
from app.ops.spec import spec_of

GIVEN = np.array([3.0, 1.0, 2.0, -1.0])
COPY = "write into a copy \\(y = x.copy\\(\\)\\), or compute a new array"


def function_with(statement: str, numba: bool = False) -> Any:
    """A function of x that executes a statement; its second line is the statement."""
    module = module_of_text(f"def f(x):\n    {statement}\n    return x * 1\n", np=np, helper=helper)
    return njit(module.f) if numba else module.f


@njit
def helper(z):
    z[0] = 7


NUMPY = [
    ("x[x > 0] = 0", COPY),
    ("np.negative(x, out=x)", COPY),
    ("x.reshape(2, 2).T[1:].fill(7)", COPY),
    ("x.sort()", COPY),
    ("np.asarray(x.base)[0] = 7", COPY),
    ("np.random.default_rng(0).shuffle(x)", COPY),
    ("x.flags.writeable = True", "cannot set WRITEABLE flag"),
]
NUMBA = ["x += 1", "x.reshape(2, 2).T[1:].fill(7)", "np.add(x, 1, x)", "y = x if x[0] > 9 else x.copy(); y[0] = 7"]


@pytest.mark.parametrize(("statement", "message"), NUMPY)
def test_a_numpy_function_that_writes_into_its_input_is_an_error(statement: str, message: str):
    x = app.to_tensor(GIVEN)
    with pytest.raises(OperatorError, match=rf"its function f raised ValueError: .*{message}"):
        app.custom_op(function_with(statement))(x)
    assert x.tolist() == GIVEN.tolist()


@pytest.mark.parametrize("statement", NUMBA)
def test_a_numba_function_that_writes_into_its_input_is_an_error_that_names_the_line(statement: str):
    x = app.to_tensor(GIVEN)
    with pytest.raises(OperatorError, match=rf"it writes into an array .*\(module_of_text_\d+.py:2: `.*{COPY}"):
        app.custom_op(function_with(statement, numba=True))(x)
    assert x.tolist() == GIVEN.tolist()


def test_a_helper_that_writes_into_the_input_is_named_by_its_line():
    line = helper.py_func.__code__.co_firstlineno + 2
    with pytest.raises(OperatorError, match=rf"test_read_only\.py:{line}"):
        app.custom_op(function_with("helper(x.ravel())", numba=True))(app.to_tensor(GIVEN))


def test_backward_can_write_neither_into_gradients_nor_into_saved_values():
    for name in ("x", "y", "dy"):

        def grad(x, y, dy, name=name):
            {"x": x, "y": y, "dy": dy}[name][...] = 0
            return dy

        x = app.to_tensor(GIVEN, stop_gradient=False)
        y = static.py_func(lambda x: x * 2, x, spec_of(x), grad)
        with pytest.raises(OperatorError, match=COPY):
            app.sum(y).backward()
        assert x.tolist() == GIVEN.tolist()
        assert y.tolist() == (GIVEN * 2).tolist()


# --- Writes that NumPy or Numba does not notice ---


@guvectorize("(n)->(n)")
def writes_into_both(x, out):
    x[0] = 7
    for i in range(len(x)):
        out[i] = x[i]


def through_an_address(x):
    ctypes.memset(x.ctypes.data, 0, x.nbytes)
    return x + 1


def through_a_kernel(x):
    return writes_into_both(x, np.empty_like(x))


@pytest.mark.parametrize("function", [through_an_address, through_a_kernel])
def test_a_write_that_numpy_does_not_notice_is_an_error_in_the_first_step_of_a_training(function: Any):
    with inputs_watched(), pytest.raises(OperatorError, match=r"it wrote into its argument 1, which"):
        app.custom_op(function, infer=lambda x: x)(app.to_tensor(GIVEN))


@njit
def sets_flat(x):
    x.flat[0] = 7
    return x * 1


@njit
def calls_a_kernel(x):
    out = np.empty_like(x)
    writes_into_both(x, out)
    return out


def calls_first_of_writable():
    first_of_writable = njit(float64(float64[:]))(lambda z: z[0])
    return njit(lambda x: x * first_of_writable(x))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: sets_flat, [7, 1, 2, -1]),
        (lambda: calls_a_kernel, [7, 1, 2, -1]),
        (calls_first_of_writable, GIVEN * 3),
        (lambda: njit(float64[:](float64[:]))(lambda x: x * 3), GIVEN * 3),  # compiled when it is made
    ],
    ids=["sets_flat", "calls_a_kernel", "calls_first_of_writable", "triple_of_writable"],
)
def test_numba_functions_that_may_write_get_a_copy(make: Any, expected: Any):
    operator, x = app.custom_op(make()), app.to_tensor(GIVEN)
    for _ in range(2):
        np.testing.assert_array_equal(operator(x).numpy(), expected)
        assert x.tolist() == GIVEN.tolist()


@pytest.mark.slow
def test_a_compiled_program_copies_and_is_an_error_as_on_tensors():
    x = static.data("x", [4], "float64")
    h = app.exp(x)
    executor = static.Executor(engine="compiled")
    copied = static.py_func(sets_flat, h, spec_of(h))
    result, unchanged = executor.run(feed={"x": GIVEN}, fetch_list=[copied, h])
    np.testing.assert_allclose(result, [7, *np.exp(GIVEN)[1:]])
    np.testing.assert_allclose(unchanged, np.exp(GIVEN))
    writing = static.py_func(function_with("x += 1", numba=True), h, spec_of(h))
    with pytest.raises(OperatorError, match=rf"py_func.f .*it writes into an array .*{COPY}"):
        executor.run(feed={"x": GIVEN}, fetch_list=[writing, h])


# --- Results ---

ROOM: np.ndarray = np.zeros(4)
SHELF: dict[str, np.ndarray] = {}


def same_buffer(x):
    return np.negative(x, out=ROOM)


def view_of_a_buffer(x):
    return np.negative(x, out=ROOM)[:]


def kept_view(x):
    SHELF["y"] = (-x)[:]
    return SHELF["y"]


def buffer_of_another_library(x):
    np.negative(x, out=ROOM)
    return np.asarray(memoryview(ROOM))


def strided_view_of_a_buffer(x):
    np.negative(x, out=ROOM)
    return np.lib.stride_tricks.as_strided(ROOM, (4,), (8,))[:]


def reshaped_by_numba(x):
    np.negative(x, out=ROOM)
    return in_rows(ROOM).ravel()


@njit
def in_rows(x):
    return x.reshape(2, 2)


KEEPING = [
    same_buffer,
    view_of_a_buffer,
    kept_view,
    buffer_of_another_library,
    strided_view_of_a_buffer,
    reshaped_by_numba,
]


@pytest.mark.parametrize("function", KEEPING)
@pytest.mark.parametrize("hook", ["custom_op", "py_func", "backward"])
def test_an_array_that_a_function_keeps_is_copied(function: Callable[..., Any], hook: str):
    operator = app.custom_op(function)
    negative = app.custom_op(lambda x: -x, name="negative")
    negative.backward(lambda dy: function(dy))
    use = {
        "custom_op": operator,
        "py_func": lambda x: static.py_func(function, x, static.InputSpec.from_tensor(x)),
        "backward": lambda x: app.grad(negative(x), x, app.to_tensor(x.numpy()))[0],
    }[hook]
    x = app.to_tensor(GIVEN, stop_gradient=False)
    first, second = use(x), use(x + 1)
    SHELF.get("y", ROOM)[:] = 7.0
    np.testing.assert_array_equal(first.numpy(), -GIVEN)
    np.testing.assert_array_equal(second.numpy(), -GIVEN - 1)


def test_results_that_share_memory_in_numba_become_two_arrays():
    @njit
    def twice(x):
        y = -x
        return y, y[::-1]

    first, second = app.custom_op(outputs=["a", "b"])(twice)(app.to_tensor(GIVEN))
    first.zero_()
    np.testing.assert_array_equal(second.numpy(), -GIVEN[::-1])


def test_a_result_that_is_a_view_of_an_input_is_copied():
    x = app.to_tensor(GIVEN)
    app.custom_op(lambda x: x[::2], name="every_second")(x).zero_()
    assert x.tolist() == GIVEN.tolist()
