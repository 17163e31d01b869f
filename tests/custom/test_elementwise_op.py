"""`custom_op(elementwise=True)`: functions of numbers, compiled where Numba can, else called for each element."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest
from layers import data
from numba import njit

import app
from app import custom_op, static
from app.autograd import gradcheck
from app.custom import elementwise
from app.engine.compiled import native_code, objects
from app.errors import OperatorError

PLACE = r"\(test_elementwise_op\.py:\d+\)"
KNOWN: dict[str, Any] = {}


@custom_op(elementwise=True)
def leaky(x, slope=0.1):
    if x > 0:
        return x
    return x * slope


@leaky.backward
def _(x, dy, slope):
    return dy if x > 0 else dy * slope


@custom_op(elementwise=True)
def uncompiled(x, slope=0.1):
    KNOWN["last"] = type(x)  # Numba cannot change a dictionary from outside
    return x if x > 0 else x * slope


@uncompiled.backward
def _(x, dy, slope):
    KNOWN["last"] = None
    return dy if x > 0 else dy * slope


@custom_op(elementwise=True)
@njit
def given_compiled(x, slope=0.1):
    return x if x > 0 else x * slope


@given_compiled.backward
@njit
def _(x, dy, slope):
    return dy if x > 0 else dy * slope


three_ways = pytest.mark.parametrize("operator", [leaky, uncompiled, given_compiled])
two_ways = pytest.mark.parametrize("operator", [leaky, uncompiled])


@three_ways
@pytest.mark.parametrize("settings", [{}, {"slope": 0.5}, {"slope": 0}, {"slope": math.inf}], ids=str)
def test_values_and_gradients_are_those_of_the_built_in_operator(operator: Any, settings: dict[str, float]):
    x = data([2.0, -3.0], [-0.5, 4.0] if settings else [0.0, math.inf])
    expected = app.nn.functional.leaky_relu(x, negative_slope=settings.get("slope", 0.1))
    actual = operator(x, **settings)
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())
    np.testing.assert_array_equal(app.grad(actual, x)[0].numpy(), app.grad(expected, x)[0].numpy())


GRID = np.arange(-12.0, 12.0).reshape(4, 6)
ARRAYS = [np.array(-2.0), np.ones((0, 3)), GRID.reshape(2, 3, 4), GRID]


@two_ways
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_results_have_the_shape_and_type_of_the_inputs(operator: Any, dtype: str):
    for array in [each.astype(dtype) for each in ARRAYS] + [GRID.astype(dtype)[::-2, ::3].T]:
        x = app.to_tensor(array, stop_gradient=False)
        y = operator(x)
        y.sum().backward()
        assert (y.dtype, x.grad.dtype, y.shape) == (dtype, dtype, list(array.shape))
        np.testing.assert_allclose(y.numpy(), np.where(array > 0, array, array * 0.1), rtol=1e-3)


@two_ways
def test_whole_numbers_become_floats_first(operator: Any):
    y = operator(app.to_tensor([2, -3]))
    assert y.dtype == "float32"
    np.testing.assert_allclose(y.numpy(), [2, -0.3], rtol=1e-6)
    assert operator(static.data("n", [3], "int64")).dtype == "float32"


def is_compiled(operator: Any, x: app.Tensor, **settings: float) -> bool:
    """Whether no warning says that it is called for each element."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        operator(x, **settings)
    return not any("is called for each element" in str(warning.message) for warning in caught)


def test_functions_that_numba_cannot_compile_are_called_for_each_element():
    assert is_compiled(custom_op(leaky.function, name="one", elementwise=True), data(1.0))
    assert is_compiled(custom_op(given_compiled.function, name="two", elementwise=True), data(1.0))
    assert not is_compiled(custom_op(uncompiled.function, name="three", elementwise=True), data(1.0))
    assert KNOWN["last"] is np.float64


def test_compiling_does_not_run_the_function():
    @custom_op(elementwise=True)
    @njit
    def checked(x):
        if x == 1.0:
            raise ValueError("one")
        return x

    assert checked(data(2.0)).item() == 2
    with pytest.raises(OperatorError, match=rf"operator checked {PLACE}: its function checked raised ValueError: one"):
        checked(data(1.0))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_dividing_by_zero_gives_infinity_as_numpy_does(compiled: bool):
    @custom_op(elementwise=True)
    def inverse(x):
        if not compiled:
            KNOWN["last"] = x
        return 1.0 / x

    np.testing.assert_array_equal(inverse(data(0.0, -2.0)).numpy(), [math.inf, -0.5])


def test_a_backward_takes_values_in_any_order_and_settings_may_be_keyword_only():
    @custom_op(elementwise=True)
    def line(x, *, slope, shift=0.0):
        return x * slope + shift

    @line.backward
    def _(dy, x, shift, *, slope):
        return dy * slope + (shift + x) * 0.0

    x = data(1.0, -2.0)
    y = line(x, slope=3.0, shift=1.0)
    np.testing.assert_array_equal(y.numpy(), [4, -5])
    np.testing.assert_array_equal(app.grad(y, x)[0].numpy(), [3, 3])
    assert is_compiled(custom_op(line.function, name="again", elementwise=True), x, slope=3.0)


# --- Several inputs and outputs ---


def _polar(x, y):
    return math.sqrt(x * x + y * y), math.atan2(y, x)


def _polar_backward(x, y, radius, dradius, dangle):
    return (
        dradius * x / radius - dangle * y / (radius * radius),
        dradius * y / radius + dangle * x / (radius * radius),
    )


def polar(compiled: bool) -> Any:
    def slow(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(x, y):
            KNOWN["last"] = function
            return function(x, y)

        return called

    operator = custom_op(_polar if compiled else slow(_polar), outputs=("radius", "angle"), elementwise=True)
    operator.backward(_polar_backward)
    return operator


both_ways = pytest.mark.parametrize("operator", [polar(True), polar(False)], ids=["compiled", "called"])


@both_ways
@pytest.mark.parametrize(("left", "right"), [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((2,), (2,))])
def test_inputs_are_broadcast_and_gradients_summed_back(operator: Any, left: tuple, right: tuple):
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(1, 2, shape) for shape in (left, right)]
    x, y = (app.to_tensor(array, stop_gradient=False) for array in arrays)
    radius, angle = operator(x, y)
    np.testing.assert_allclose(radius.numpy(), np.hypot(*arrays))
    np.testing.assert_allclose(angle.numpy(), np.arctan2(*arrays[::-1]))
    assert gradcheck(operator, [x, y])


@both_ways
def test_broadcasting_with_an_unknown_batch(operator: Any):
    x, y = static.data("x", [None, 2]), static.data("y", [None, 1])
    x.stop_gradient = y.stop_gradient = False
    radius, angle = operator(x, y)
    assert radius.spec == angle.spec == ((-1, 2), "float32")
    fetched = [radius, angle, *static.gradients(radius, [x, y])]
    for rows in (1, 3):
        feed = {"x": np.full((rows, 2), 3, "float32"), "y": np.full((1, 1), 4, "float32")}
        value, turn, gx, gy = static.Executor().run(feed=feed, fetch_list=fetched)
        np.testing.assert_array_equal(value, np.full((rows, 2), 5))
        np.testing.assert_allclose(turn, np.full((rows, 2), math.atan2(4, 3)), rtol=1e-6)
        np.testing.assert_allclose(gx, np.full((rows, 2), 0.6), rtol=1e-6)
        np.testing.assert_allclose(gy, [[rows * 2 * 0.8]], rtol=1e-6)


def test_numbers_stand_beside_tensors():
    radius, _ = polar(False)(data(3.0, 0.0, dtype="float32"), 4)
    np.testing.assert_array_equal(radius.numpy(), [5, 4])
    assert radius.dtype == "float32"


# --- Errors ---


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x, x), r"returned \(.*\) for 2.0, expected a number"),
        (lambda x: "text", "returned 'text' for 2.0, expected a number"),
        (lambda x: [x], r"returned \[.*\] for 2.0, expected a number"),
        (lambda x: x if x > 2 else None, "returned None for 2.0, expected a number"),  # which Numba takes for NaN
    ],
)
def test_a_result_that_is_not_a_number_is_an_error(function: Any, message: str):
    operator = custom_op(function, name="it", elementwise=True)
    with pytest.raises(OperatorError, match=rf"operator it {PLACE}: in its function <lambda>: {message}"):
        operator(data(3.0, 2.0) if "None" in message else data(2.0))


@pytest.mark.slow
def test_a_function_that_numba_compiles_to_an_array_runs_as_a_python_call():
    operator = custom_op(lambda x: np.array(x * 2.0), name="doubled", elementwise=True)  # as np.where would make one
    operator.backward(lambda dy: dy * 2.0)
    x = static.data("x", [None, 2])
    x.stop_gradient = False
    y = operator(x)
    (g,) = static.gradients(y, x)
    value, slope = static.Executor(engine="compiled").run(feed={"x": np.array([[1, -2]], "float32")}, fetch_list=[y, g])
    np.testing.assert_array_equal(value, [[2, -4]])
    np.testing.assert_array_equal(slope, [[2, 2]])
    assert "its function returns an array of float64; if np.where makes it, write" in x.block.program.explain([y])


@pytest.mark.parametrize("function", [lambda x: (x, x), lambda x: [x], lambda x: (x + 0j) ** 2])
def test_a_result_that_is_not_a_number_is_an_error_in_a_program(function: Any):
    x = static.data("x", [None])
    y = custom_op(function, name="it", elementwise=True)(x)
    with pytest.raises(OperatorError, match=rf"operator it {PLACE}: .*returned"):
        static.Executor(engine="compiled").run(feed={"x": np.ones(2, "float32")}, fetch_list=[y])


def test_a_wrong_number_of_outputs_is_an_error():
    operator = custom_op(lambda x: x, name="it", outputs=("a", "b"), elementwise=True)
    with pytest.raises(OperatorError, match=r"returned .* for 2.0, expected 2 numbers"):
        operator(data(2.0))


def test_shapes_that_cannot_be_broadcast_are_errors():
    x, y = static.data("x", [2]), static.data("y", [3])
    with pytest.raises(OperatorError, match="cannot be broadcast together"):
        polar(False)(x, y)
    with pytest.raises(OperatorError, match=r"\[2\].*\[3\]|broadcast"):
        polar(False)(data(1.0, 2.0), data(1.0, 2.0, 3.0))


# --- Kernels: one for each source, types and settings that are not numbers ---

X = np.array([-1.0, 0.5, 2.0], "float32")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The key of each loop that is made in the test."""
    keys: list[str] = []
    monkeypatch.setattr(native_code, "_loaded", type(native_code._loaded)())
    make = native_code.NativeCode.__init__
    monkeypatch.setattr(
        native_code.NativeCode, "__init__", lambda code, key, *rest: keys.append(key) or make(code, key, *rest)
    )
    return keys


def scaled(scale):
    @custom_op(elementwise=True)
    def operator(x, temperature=1.0, steps=1):
        return x / temperature * scale + steps

    return operator


@pytest.mark.slow
def test_a_setting_that_varies_needs_no_new_kernel_forward_or_back(compiled):
    operator, x = scaled(2.0), app.to_tensor(X)
    x.stop_gradient = False
    for temperature in (1.0, 0.5, 0.25):
        y = operator(x, temperature=temperature)
        np.testing.assert_allclose(y.numpy(), X / temperature * 2 + 1)
        (gradient,) = app.grad([app.sum(y)], [x])
        np.testing.assert_allclose(gradient.numpy(), np.full(3, 2 / temperature, "float32"))
    assert len(compiled) == 2  # one for each pass


@pytest.mark.slow
def test_equal_functions_share_a_kernel_and_another_constant_makes_a_new_one(compiled):
    for scale, kernels in ((2.0, 1), (2.0, 1), (3.0, 2)):
        assert scaled(scale)(app.to_tensor(X)).tolist() == (X * scale + 1).tolist()
        assert len(compiled) == kernels


@pytest.mark.slow
def test_settings_that_are_not_numbers_are_part_of_the_kernel_and_few_such_kernels_are_kept(compiled, monkeypatch):
    monkeypatch.setattr(native_code, "LOADED", 1)
    monkeypatch.setattr(elementwise, "KEPT", 1)

    @custom_op(elementwise=True)
    def weighted(x, weights=(1.0,)):
        return x // weights[0]

    for weights, result in (((1,), [-1, 0, 2]), ((2.0,), [-1, 0, 1]), ((1.0,), [-1, 0, 2])):
        assert weighted(app.to_tensor(X), weights=weights).tolist() == result
    assert len(set(compiled)) == 3
    assert len(native_code._loaded) == 1


FACTOR = 2.0


def test_a_kernel_that_is_made_while_a_variable_changes_is_not_used_afterwards(monkeypatch):
    call, make = elementwise.over_arrays(lambda x: x * FACTOR, 1), elementwise._kernel
    seen: list[float] = []

    def changed_meanwhile(*arguments: Any) -> Any:
        kernel = make(*arguments)
        monkeypatch.setattr(elementwise, "_kernel", make)
        monkeypatch.setitem(globals(), "FACTOR", 3.0)
        thread = Thread(target=lambda: seen.append(call(np.ones(1))[0].item()))
        thread.start()
        thread.join()
        return kernel

    monkeypatch.setattr(elementwise, "_kernel", changed_meanwhile)
    call(np.ones(1))
    assert [*seen, call(np.ones(1))[0].item()] == [3.0, 3.0]


@pytest.mark.slow
def test_a_kernel_is_kept_on_disk_for_other_processes(compiled, monkeypatch):
    operator = scaled(5.0)
    assert operator(app.to_tensor(X)).tolist() == (X * 5 + 1).tolist()
    native_code._loaded.clear()
    monkeypatch.setattr(objects, "compiled", None)
    assert scaled(5.0)(app.to_tensor(X)).tolist() == (X * 5 + 1).tolist()
    assert len(compiled) == 2


@pytest.mark.slow
def test_a_function_that_numba_cannot_compile_warns_once_with_its_reason_and_line():
    @custom_op(elementwise=True)
    def of_text(x, digits=1):
        return float(f"{x:.{digits}f}")

    x = app.to_tensor(X)
    with pytest.warns(
        RuntimeWarning, match=r"of_text is called for each element .*float32, Numba cannot compile of_text: .+"
    ):
        assert of_text(x).tolist() == X.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert of_text(x, digits=2).tolist() == X.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        lambda x, *, most=2: np.clip(x, -1, most) * np.heaviside(x, 0.25) + np.clip(x, None, 0.5),
        lambda x: np.where(x > 0, x, 0.1 * x) + np.where(x, 2, x),
        lambda x: x * float(x > 0) + (float(3) if x < float("inf") else 0.0),
        lambda x: math.fmod(x, 2.0) + np.fix(x),
        lambda x: np.exp2(x) + np.exp2(np.float64(x)),
    ],
    ids=["limits", "where", "float", "remainder", "exp2 of two types"],
)
def test_functions_that_numba_does_not_have_for_numbers_are_compiled(function):
    values = [-3.0, 0.25, 0.0, 1.5, 3.0, np.nan]
    operator = custom_op(name="operator", elementwise=True)(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = operator(app.to_tensor(values))
    np.testing.assert_allclose(y.numpy(), [function(np.float64(v)) for v in values], rtol=1e-6)
