"""Functions of arrays that are elementwise arithmetic or loops become functions of numbers; others do not."""

from __future__ import annotations

import inspect
import textwrap
from threading import Thread
from typing import Any

import numpy as np
import pytest
from modules_of_text import module_of_text
from numba import njit

import app
from app import static
from app.custom import forms
from app.custom.on_numbers import on_numbers, stops_on_numbers
from app.errors import OperatorError

HEAD = "import math\nimport numpy as np\nSLOPE = 0.1\n"
FLAT = "y = np.{}(x)\nfor i in range(x.size):\n{}\nreturn y"
AXES = "y = np.{}(x)\nfor i in range({}):\n    for j in range({}):\n{}\nreturn y"


def function_of(body: str, parameters: str = "x") -> Any:
    return module_of_text(f"{HEAD}def f({parameters}):\n{textwrap.indent(body, '    ')}\n").f


def flat(body: str, new: str = "zeros_like") -> str:
    return FLAT.format(new, textwrap.indent(body, "    "))


def axes(body: str, first: str = "x.shape[0]", second: str = "x.shape[1]") -> str:
    return AXES.format("zeros_like", first, second, textwrap.indent(body, " " * 8))


TWO_RESULTS = """
z = np.ones_like(x)
w = np.empty_like(z)
for i in range(len(x)):
    for j in range(y.shape[1]):
        s = 1 / (1 + math.exp(-x[i, j]))
        s *= SLOPE
        if y[i, j] > s:
            z[i, j] = s - np.tanh(y[i, j])
        w[i, j] = max(s, y[i, j])
return z, w
"""
SERIES = """
y = np.empty_like(x)
for i in range(x.size):
    total = start
    power = 1.0
    for k in range(4):
        power = power * x.flat[i]
        total += power / (k + 1)
    y.flat[i] = total
return y
"""
TWICE = """
y = np.zeros_like(x)
z = np.zeros_like(y)
for i in range(x.size):
    y.flat[i] = x.flat[i]
for j in range(x.size):
    z.flat[j] = 2 * x.flat[j]
return z, y
"""
UPDATED = """
y.flat[i] = x.flat[i] / 3
for k in range(2):
    y.flat[i] *= 0.3 + k
if x.flat[i] > 0:
    y.flat[i] -= x.flat[i] / 7
"""
RELU = flat("y.flat[i] = 0 if x.flat[i] <= 0 else x.flat[i]", "empty_like")
SOFTMAX = """
y = np.empty_like(x)
for i in range(len(x)):
    total = 0.0
    for j in range(x.shape[1]):
        y[i, j] = np.exp(x[i, j])
        total += y[i, j]
    for j in range(x.shape[1]):
        y[i, j] /= total
return y
"""
TURNED = axes("y[i, j] = x[j, i]")

ELEMENTWISE = {
    "maximum": ("return np.maximum(x, np.float32(0))", "x"),
    "a gradient": ('"""A gradient."""\nlow = SLOPE * dy\nreturn np.where(y > 0, dy, low)', "y, dy"),
    "two results": ("return x * y, np.exp(-x) + np.pi", "x, y"),
    "extremes": ("return np.maximum(x, np.minimum(y, np.float32(2))), np.minimum(y, x)", "x, y"),
    "limits": ("return np.clip(x, np.float32(-1), y), np.heaviside(x, y)", "x, y"),
    "a loop": (RELU, "x"),
    "a loop with limits": (flat("y.flat[i] = np.clip(x.flat[i], -0.5, 0.5)"), "x"),
    "a loop that may leave zeros": (flat("if x.flat[i] > 0:\n    y.flat[i] = dy.flat[i]"), "x, dy"),
    "nested loops": (TWO_RESULTS, "x, y"),
    "a loop inside": (SERIES, "x, start=2.0"),
    "two loops": (TWICE, "x"),
    "an element that is written several times": (flat(UPDATED, "empty_like"), "x"),
}
OTHERS = {
    "a sum": "return x - np.sum(x)",
    "an index": "return x[::-1] * 2",
    "a change in place": "x += 1\nreturn x",
    "a sort": "return np.sort(x)",
    "a keyword": "return np.exp(x, out=x)",
    "a constant": "return 1.0",
    "a branch": "if x > 0:\n    return x\nreturn -x",
    "a product of matrices": "return x @ x",
    "a row's softmax": SOFTMAX,
    "another size": "size = 2\ny = np.zeros_like(x)\nfor i in range(size):\n    y.flat[i] = x.flat[i]\nreturn y",
    "half": flat("y.flat[i] = x.flat[i]").replace("x.size", "x.size // 2"),
    "a neighbour": flat("y.flat[i] = x.flat[i - 1]"),
    "the index": flat("y.flat[i] = i"),
    "the size": flat("y.flat[i] = x.flat[i] / x.size"),
    "an element that is not written": flat("if x.flat[i] > 0:\n    y.flat[i] = x.flat[i]", "empty_like"),
    "an element that is added to before it is written": flat("y.flat[i] += x.flat[i]", "empty_like"),
    "a sum into the input": flat("x.flat[i] += 1\ny.flat[i] = 1"),
    "a sum into another element": flat("y.flat[i] = 1\ny.flat[i - 1] += x.flat[i]"),
    "a write into the input": flat("x.flat[i] = 0\ny.flat[i] = 1"),
    "a name that is carried": flat("if x.flat[i] > 0:\n    last = x.flat[i]\ny.flat[i] = last"),
    "axes in another order": TURNED,
    "another axis": axes("y[i, j] = x[i, j]", "x.shape[1]", "x.shape[0]"),
    "a column": "y = np.zeros_like(x)\nfor i in range(x.shape[0]):\n    y[i, 0] = x[i, 0]\nreturn y",
    "random numbers": flat("y.flat[i] = np.random.rand() * x.flat[i]"),
    "the input given back": "for i in range(x.size):\n    x.flat[i] = 0\nreturn x",
    "a sum in a loop": flat("y.flat[i] = np.sum(x)"),
}


@pytest.mark.parametrize("what", ELEMENTWISE)
def test_elementwise_functions_become_functions_of_numbers_with_the_same_results(what: str):
    function = function_of(*ELEMENTWISE[what])
    of_numbers, _ = on_numbers(function)
    assert of_numbers is not None
    assert stops_on_numbers(function) is None
    count = function.__code__.co_argcount - len(function.__defaults__ or ())
    arrays = [np.random.default_rng(i).normal(size=(3, 5)).astype(np.float32) for i in range(count)]
    results = [of_numbers(*numbers) for numbers in zip(*(array.flat for array in arrays), strict=True)]
    expected = np.array(function(*arrays))
    np.testing.assert_allclose(np.array(results, np.float32).T.reshape(expected.shape), expected, rtol=1e-6)


@pytest.mark.parametrize("what", OTHERS)
def test_other_functions_stay_functions_of_arrays_and_their_line_is_known(what: str):
    function = function_of(OTHERS[what])
    assert on_numbers(function) == (None, None)
    line, text = stops_on_numbers(function)
    assert line >= function.__code__.co_firstlineno
    assert text


def test_a_function_without_source_is_not_converted():
    names: dict[str, Any] = {}
    exec("def f(x):\n    return x * 2", names)
    assert on_numbers(names["f"]) == (None, None)


@pytest.mark.parametrize("what", ["extremes", "limits"])
@pytest.mark.parametrize("kind", [np.float32, pytest.param(np.float64, marks=pytest.mark.soak)])
def test_extremes_of_zeros_infinities_and_nan_are_those_of_numpy(kind: Any, what: str):
    extremes = function_of(*ELEMENTWISE[what])
    edges = np.array([-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], kind)
    x, y = (grid.reshape(-1) for grid in np.meshgrid(edges, edges))
    single = njit(on_numbers(extremes)[0])
    results = np.array([single(*pair) for pair in zip(x, y, strict=True)], kind).T
    np.testing.assert_array_equal(results, np.array(extremes(x, y)))


@pytest.mark.parametrize(
    ("body", "elementwise"),
    [
        ("return x ** -1", False),
        ("y = pow(x, -1)\nreturn y", False),
        ("return x ** -1", True),
        ("x **= -1\nreturn x", True),
    ],
)
def test_a_negative_power_of_zero_is_infinite_as_in_numpy(body: str, elementwise: bool):
    x = app.to_tensor([0.0, 2.0], stop_gradient=False)
    with np.errstate(divide="ignore"):
        y = app.custom_op(function_of(body), elementwise=elementwise)(x)
        y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([np.inf, 0.5], [-np.inf, -0.25])


def test_an_element_that_is_written_several_times_is_rounded_as_in_the_array():
    function = function_of(*ELEMENTWISE["an element that is written several times"])
    single = njit(on_numbers(function)[0])
    x = np.random.default_rng(0).normal(size=50).astype(np.float32)
    np.testing.assert_array_equal([single(value) for value in x], njit(function)(x))


def test_loops_over_axes_are_for_arrays_of_as_many_axes():
    assert on_numbers(function_of(RELU))[1] is None
    assert on_numbers(function_of(TWO_RESULTS, "x, y"))[1] == 2


@njit
def decorated(x: Any) -> Any:
    return x * 2


def test_the_converted_function_has_the_source_of_the_user():
    assert inspect.getsource(on_numbers(decorated)[0]).strip().endswith("return x * 2")


def test_a_function_is_converted_once():
    function = njit(function_of(RELU))
    first, second = (forms.forms_of(function).on_numbers(1) for _ in range(2))
    assert first is second  # so that a compiler sees that the layers are alike
    assert forms.returning(function, None, False) is forms.returning(function, None, False)


def test_threads_may_ask_while_it_is_converted(monkeypatch):
    converted = forms.Forms(njit(function_of("return x / y", "x, y")))
    seen: list[Any] = []

    def asked_meanwhile(function: Any) -> Any:
        monkeypatch.undo()
        thread = Thread(target=lambda: seen.append(converted.on_numbers(1)))
        thread.start()
        thread.join()
        return on_numbers(function)

    monkeypatch.setattr(forms, "on_numbers", asked_meanwhile)
    seen.append(converted.on_numbers(1))
    assert [of_numbers(6.0, 2.0) for of_numbers in seen] == [3.0, 3.0]


# In the engines


def run_in(engine: str, function: Any, array: np.ndarray, infer: Any = None, **settings: Any) -> np.ndarray:
    with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()):
        result = app.custom_op(function, infer=infer)(static.data("x", [None, array.shape[1]]) * 2, **settings)
        return static.Executor(engine=engine).run(feed={"x": array}, fetch_list=[result])[0]


ENGINES = {"turned": (TURNED, "x"), "settings": (SERIES, "x, start=2.0")}
FURTHER = {
    "relu": (RELU, "x"),
    "softmax": (SOFTMAX, "x"),
    **{what: (OTHERS[what], "x") for what in ("a sum", "an index", "an element that is not written", "the size")},
}


@pytest.mark.slow
@pytest.mark.parametrize("what", [*ENGINES, *(pytest.param(what, marks=pytest.mark.soak) for what in FURTHER)])
def test_both_engines_agree_whether_a_function_is_inlined_or_called(what: str):
    function = njit(function_of(*{**ENGINES, **FURTHER}[what]))
    array = abs(np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32))
    settings = {"start": -1.0} if what == "settings" else {}
    actual, expected = (run_in(engine, function, array, **settings) for engine in ("compiled", "reference"))
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


TOTALS = """
y = np.empty_like(x)
total = 0.0
for i in range(x.shape[0]):
    total += x[i, 0]
    for j in range(x.shape[1]):
        y[i, j] = total / x[i, j]
return y
"""


@pytest.mark.slow
@pytest.mark.parametrize("body", [flat("y.flat[i] = 1 / x.flat[i]", "empty_like"), TOTALS], ids=["inlined", "called"])
def test_a_division_by_zero_raises_as_it_does_in_a_function_of_numba(body: str):
    function = njit(function_of(body))
    for engine in ("compiled", "compiled", "reference"):  # the second time, what compiling it has shown is known
        with pytest.raises(OperatorError, match="ZeroDivisionError"):
            run_in(engine, function, np.zeros((2, 2), np.float32), infer=lambda x: x)
