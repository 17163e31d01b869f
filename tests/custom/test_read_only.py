"""What an operator is given is read-only: a function that writes into it is refused, or writes into a copy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numba import float64, guvectorize, njit

import app
from app import static
from app.custom.read_only import inputs_watched
from app.errors import OperatorError
from app.ops.spec import spec_of

GIVEN = np.array([3.0, 1.0, 2.0, -1.0])
REFUSED = "write into a copy \\(y = x.copy\\(\\)\\), or compute a new array"


def line_of(function, text):
    """The place of a line of this file, as errors tell it."""
    source = getattr(function, "py_func", function).__code__
    with open(__file__) as file:
        lines = file.read().splitlines()
    found = next(i for i, line in enumerate(lines, 1) if i >= source.co_firstlineno and text in line)
    return f"test_read_only.py:{found}"


# NumPy


def sets_items(x):
    x[x > 0] = 0
    return x


def through_out(x):
    return np.negative(x, out=x)


def through_a_view(x):
    x.reshape(2, 2).T[1:].fill(7)
    return x


def through_a_method(x):
    x.sort()
    return x


def through_the_owner(x):
    np.asarray(x.base)[0] = 7
    return x


def with_the_flag_set(x):
    x.flags.writeable = True
    x[0] = 7
    return x


def shuffles(x):
    np.random.default_rng(0).shuffle(x)
    return x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        *(
            (f, REFUSED)
            for f in (sets_items, through_out, through_a_view, through_a_method, through_the_owner, shuffles)
        ),
        (with_the_flag_set, "cannot set WRITEABLE flag"),
    ],
)
def test_numpy_refuses_to_write(function, message):
    x = app.to_tensor(GIVEN)
    with pytest.raises(OperatorError, match=rf"{function.__name__} raised ValueError: .*{message}"):
        app.custom_op(function)(x)
    assert x.tolist() == GIVEN.tolist()


def test_backward_can_write_neither_into_what_arrives_nor_into_what_was_saved():
    for name in ("x", "y", "dy"):

        def grad(x, y, dy, name=name):
            {"x": x, "y": y, "dy": dy}[name][...] = 0
            return dy

        x = app.to_tensor(GIVEN)
        x.stop_gradient = False
        y = static.py_func(lambda x: x * 2, x, spec_of(x), grad)
        with pytest.raises(OperatorError, match=REFUSED):
            app.sum(y).backward()
        assert x.tolist() == GIVEN.tolist()
        assert y.tolist() == (GIVEN * 2).tolist()


def test_a_result_is_memory_of_its_own():
    @app.custom_op
    def every_second(x):
        return x[::2]

    x = app.to_tensor(GIVEN)
    y = every_second(x)
    y.zero_()
    assert x.tolist() == GIVEN.tolist()


def through_an_address(x):
    ctypes.memset(x.ctypes.data, 0, x.nbytes)
    return x + 1


def through_a_kernel(x):
    return writes_into_both(x, np.empty_like(x))


@pytest.mark.parametrize("function", [through_an_address, through_a_kernel])
def test_what_numpy_lets_through_is_shown_by_the_first_step_of_a_training(function):
    with inputs_watched(), pytest.raises(OperatorError, match=r"it wrote into its argument 1, which"):
        app.custom_op(function, infer=lambda x: x)(app.to_tensor(GIVEN))


# Numba


@njit
def helper(z):
    z[0] = 7


@guvectorize("(n)->(n)")
def writes_into_both(x, out):
    x[0] = 7
    for i in range(len(x)):
        out[i] = x[i]


@njit
def adds_in_place(x):
    x += 1
    return x * 1


@njit
def fills_a_view(x):
    x.reshape(2, 2).T[1:].fill(7)
    return x * 1


@njit
def calls_a_helper(x):
    y = x
    helper(y.ravel())
    return x * 1


@njit
def gives_out(x):
    np.add(x, 1, x)
    return x * 1


@njit
def writes_sometimes(x):
    y = x if x[0] > 100 else x.copy()
    y[0] = 7
    return y * 1


NATIVE = {
    adds_in_place: "x += 1",
    fills_a_view: ".fill(7)",
    gives_out: "np.add(x, 1, x)",
    writes_sometimes: "y[0] = 7",
}


@pytest.mark.parametrize(("function", "line"), NATIVE.items(), ids=lambda v: getattr(v, "__name__", ""))
def test_numba_refuses_to_compile_a_write(function, line):
    x = app.to_tensor(GIVEN)
    with pytest.raises(OperatorError, match=rf"it writes into an array .*\({line_of(function, line)}: `.*{REFUSED}"):
        app.custom_op(function)(x)
    assert x.tolist() == GIVEN.tolist()


def test_the_line_of_a_helper_is_told():
    with pytest.raises(OperatorError, match=line_of(helper, "z[0] = 7")):
        app.custom_op(calls_a_helper)(app.to_tensor(GIVEN))


@njit
def sets_flat(x):
    x.flat[0] = 7
    return x * 1


@njit
def calls_a_kernel(x):
    out = np.empty_like(x)
    writes_into_both(x, out)
    return out


@pytest.mark.parametrize("function", [sets_flat, calls_a_kernel])
def test_what_numba_lets_through_writes_into_a_copy(function):
    operator, x = app.custom_op(function), app.to_tensor(GIVEN)
    for _ in range(2):
        assert operator(x).tolist() == [7, 1, 2, -1]
        assert x.tolist() == GIVEN.tolist()


def calls_what_is_for_certain_types():
    @njit(float64(float64[:]))
    def first(z):
        return z[0]

    @njit
    def calls_what_is_for_certain_types(x):
        return x * first(x)

    return calls_what_is_for_certain_types


def is_for_certain_types():
    @njit(float64[:](float64[:]))
    def for_certain_types(x):
        return x * 3

    return for_certain_types


@pytest.mark.parametrize("make", [calls_what_is_for_certain_types, is_for_certain_types])
def test_functions_that_were_declared_for_arrays_that_may_be_written_work(make):
    operator, x = app.custom_op(make()), app.to_tensor(GIVEN)
    for _ in range(2):
        assert operator(x).tolist() == (GIVEN * 3).tolist()


# Engines


@pytest.mark.slow
def test_a_compiled_program_refuses_and_copies_as_eager_mode_does():
    x = static.data("x", [4], "float64")
    h = app.exp(x)
    executor = static.Executor(engine="compiled")
    copied = static.py_func(sets_flat, h, spec_of(h))
    found, kept = executor.run(feed={"x": GIVEN}, fetch_list=[copied, h])
    np.testing.assert_allclose(found, [7, *np.exp(GIVEN)[1:]])
    np.testing.assert_allclose(kept, np.exp(GIVEN))
    refused = static.py_func(adds_in_place, h, spec_of(h))
    with pytest.raises(OperatorError, match=rf"py_func.adds_in_place .*it writes into an array .*{REFUSED}"):
        executor.run(feed={"x": GIVEN}, fetch_list=[refused, h])


# What a function returns and keeps


ROOM, SHELF = np.zeros(4), {}


def same_buffer(x):
    return np.negative(x, out=ROOM)


def view_of_a_buffer(x):
    return np.negative(x, out=ROOM)[:]


def kept_view(x):
    SHELF["y"] = (-x)[:]
    return SHELF["y"]


@pytest.mark.parametrize("function", [same_buffer, view_of_a_buffer, kept_view])
@pytest.mark.parametrize("hook", ["custom_op", "py_func", "backward"])
def test_an_array_that_a_function_keeps_is_copied(function, hook):
    def use(x):
        if hook == "py_func":
            return static.py_func(function, x, static.InputSpec.from_tensor(x))
        if hook == "custom_op":
            return operator(x)
        return app.grad(negative(x), x, app.to_tensor(x.numpy()))[0]

    operator = app.custom_op(function)
    negative = app.custom_op(lambda x: -x, name="negative")
    negative.backward(lambda dy: function(dy))
    x = app.to_tensor(GIVEN, stop_gradient=False)
    first = use(x)
    second = use(x + 1)
    SHELF.get("y", ROOM)[:] = 7.0
    np.testing.assert_array_equal(first.numpy(), -GIVEN)
    np.testing.assert_array_equal(second.numpy(), -GIVEN - 1)


def test_an_array_of_its_own_is_not_copied():
    made = []

    def double(x):
        y = x * 2
        made.append(y.ctypes.data)
        return y

    result = app.custom_op(double)(app.to_tensor(GIVEN))
    assert result._array.ctypes.data == made[0]
