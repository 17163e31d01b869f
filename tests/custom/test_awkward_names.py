"""Users' inputs, settings, variables and outputs may have the names that the framework uses for its own.

Each operator below is written with `NAME0`, `NAME1` and so on in several places; with every awkward name in each of
them, values and gradients are those of the operator with harmless names, whose gradients are compared with finite
differences.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest
from as_python import as_python, uncompiled

import app
from app import custom_op, static
from app.errors import OperatorError, ProgramError

__all__ = ["uncompiled"]

NAMES = [
    "self", "cls", "ctx", "args", "kwargs", "np", "app", "njit", "math", "custom_op", "operator", "function",
    "definition", "kernel", "infer", "call", "needs", "out", "dout", "douts", "ddout", "y", "dy", "ddy", "dx",
    "ddx", "x_grad", "x_like", "x_shape", "x_from_1", "grad", "gradient", "gradients", "attributes", "settings",
    "name", "dtype", "shape", "axis", "keepdim", "seed", "training", "inputs", "outputs", "input", "output",
    "value", "values", "value0", "value1", "arrays", "specs", "results", "result", "inner", "closure", "type",
    "range", "len", "max", "min", "float", "abs", "print", "exp", "maximum", "v1", "dv_dx", "s", "dx_dx", "i",
    "i0", "i1", "n", "row", "rows", "size", "index", "item", "start", "stop", "context", "like", "label",
    "f_grad", "f_slopes", "_", "__",
]  # fmt: skip
FEW = ["out", "dout", "np", "self", "inner", "type", "i0", "maximum", "x_like"]
HEAD = """
import math as _math
import numpy as _np
from numba import njit as _njit
from app import custom_op as _op
from app.autograd import PyLayer as _PyLayer
from app.jit import to_static as _to_static
from app.static import InputSpec as _Spec, py_func as _py_func
"""
NUMBERS = {
    "a derived gradient": """
NAME0 = 1.5
def NAME1(NAME2, z):
    return z * NAME2
def outer(NAME3):
    @_op(elementwise=True, outputs=['NAME4', 'second'])
    def NAME5(NAME6, x, NAME7=1.5, *, NAME8=0.75):
        NAME9 = NAME6 * _np.tanh(NAME6)
        NAME9 = NAME9 * x + _math.exp(0.1 * NAME9)
        return NAME1(NAME9, x) * NAME7 * NAME3 + NAME0 * NAME6 * x, _np.abs(x) * NAME8 + NAME7 * NAME6
    return NAME5
f = outer(2.5)
""",
    "a backward": """
@_op(elementwise=True, outputs='NAME0')
def f(x, NAME1, NAME2=1.5):
    return x * NAME1 * NAME1 * NAME2
@f.backward
def _f(dNAME0, x, NAME1, NAME0, NAME2):
    return dNAME0 * NAME0 / x, 2 * x * NAME1 * NAME2 * dNAME0
""",
}
"""Operators on single numbers: a global, a helper and its input, a variable of a closure, an output, the name of the
operator, inputs, settings and a variable."""
ARRAYS = {
    "custom_op": """
@_op(outputs=['NAME0', 'second'])
def f(x, NAME1, NAME2=1.5, *, NAME3=0.75):
    return x * NAME1 * NAME1 * NAME2, NAME3 * x * x
@f.backward
def _f(x, NAME1, NAME0, dNAME0, dsecond, NAME2, *, NAME3):
    return dNAME0 * NAME0 / x + dsecond * 2 * NAME3 * x, 2 * x * NAME1 * NAME2 * dNAME0
""",
    "py_func": """
def _fw(NAME0, NAME1):
    return NAME0 * NAME1 * NAME1
def _bw(NAME0, NAME1, z, dz):
    return dz * NAME1 * NAME1, 2 * NAME0 * NAME1 * dz
def f(x, z):
    return _py_func(_fw, [x, z], _Spec(x.shape, 'float64'), _bw)
""",
    "PyLayer": """
class F(_PyLayer):
    @staticmethod
    def forward(NAME0, x, NAME1, NAME2=1.5):
        NAME0.NAME2 = NAME2
        NAME0.save_for_backward(x, NAME1)
        return x * NAME1 * NAME1 * NAME2
    @staticmethod
    def backward(NAME0, dz):
        x, NAME1 = NAME0.saved_tensor()
        return dz * NAME1 * NAME1 * NAME0.NAME2, 2 * x * NAME1 * dz * NAME0.NAME2
def f(x, z):
    return F.apply(x, NAME1=z, NAME2=2.5)
""",
}
"""Operators on arrays and on Tensors: inputs, settings, outputs, and the context of a PyLayer."""
NATIVE = {
    "an input": "@_op\n@_njit\ndef f(x, NAME):\n    return _np.maximum(x, 0.1 * NAME) * x\n"
    "@f.backward\n@_njit\ndef _f(x, NAME, dz):\n    first = x > 0.1 * NAME\n"
    "    return _np.where(first, 2 * x, 0.1 * NAME) * dz, _np.where(first, 0, 0.1 * x) * dz\n",
    "a setting": "@_op\n@_njit\ndef f(x, NAME=1.5):\n    return x * NAME * x\n"
    "@f.backward\n@_njit\ndef _f(dz, x, NAME):\n    return dz * NAME * 2 * x\n",
    "a result of a loop": "@_op\n@_njit\ndef f(x):\n    NAME = _np.zeros_like(x)\n    for j in range(x.size):\n"
    "        if x.flat[j] > 0:\n            NAME.flat[j] = x.flat[j] * x.flat[j]\n    return NAME\n"
    "@f.backward\n@_njit\ndef _f(x, dz):\n    NAME = _np.zeros_like(x)\n    for j in range(x.size):\n"
    "        if x.flat[j] > 0:\n            NAME.flat[j] = 2 * x.flat[j] * dz.flat[j]\n    return NAME\n",
}
"""Operators on arrays that are compiled."""
TRACED = {
    "an argument": "@_to_static(backend='reference')\ndef f(x, NAME):\n    if x.sum() > 0:\n        z = NAME * x\n"
    "    else:\n        z = NAME * 2.0\n    return z * NAME\n",
    "a variable": "@_to_static(backend='reference')\ndef f(x):\n    NAME = x\n    if x.sum() > 0:\n"
    "        NAME = NAME * x\n    else:\n        NAME = NAME * 2.0\n    for j in (1, 2):\n"
    "        NAME = NAME * x\n    return NAME\n",
}
"""Traced functions."""

X = np.array([[0.5, 1.25, -0.75], [1.5, 0.3, -1.1]])
Z = np.array([[1.1, -0.4, 0.8], [0.6, -1.3, 0.9]])
WEIGHTS = np.array([[0.3, -1.2, 0.7], [1.9, 0.4, -0.6]])
_numbers = count()


def function(text: str, name: str) -> tuple[Any, list[np.ndarray]]:
    """The function of a text with this name in its first place and others in the rest, and the arrays for it."""
    first = NAMES.index(name) if name in NAMES else 0
    others = [
        f"{name}{place}" if name == "harmless" else NAMES[(first + 9 * place) % len(NAMES)] for place in range(10)
    ]
    source = HEAD + re.sub(r"NAME(\d?)", lambda match: others[int(match[1])] if match[1] else name, text)
    file = f"<awkward {next(_numbers)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    namespace: dict[str, Any] = {"__name__": "awkward"}
    exec(compile(source, file, "exec"), namespace)
    two = re.search(r"f\((x, NAME1?[,)]|x, z)|NAME6, x", text)
    return namespace["f"], [X, Z] if two else [X]


def total(results: Any, weights: Any) -> Any:
    """A number that depends on all elements of all results."""
    each = results if isinstance(results, (tuple, list)) else [results]
    terms = [(result * weights * (place + 1.0)).sum() for place, result in enumerate(each)]
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def on_tensors(function: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    tensors = [app.to_tensor(a, stop_gradient=False) for a in arrays]
    number = total(function(*tensors), app.to_tensor(WEIGHTS))
    return [number.numpy(), *(g.numpy() for g in app.grad(number, tensors))]


def in_program(function: Any, arrays: Sequence[np.ndarray], engine: str) -> list[np.ndarray]:
    with static.program_guard(static.Program(), static.Program()):
        inputs = [static.data(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
        for variable in inputs:
            variable.stop_gradient = False
        number = total(function(*inputs), static.data("weights", WEIGHTS.shape, "float64"))
        fetched = [number, *static.gradients(number, inputs)]
        feed = {**{f"x{i}": a for i, a in enumerate(arrays)}, "weights": WEIGHTS}
        return static.Executor(engine=engine).run(static.default_main_program(), feed, fetched)


@cache
def expected(text: str) -> list[np.ndarray]:
    """The value with a harmless name, and its gradients by finite differences."""
    f, arrays = function(text, "harmless")

    def value(place: int = 0, step: Any = 0.0) -> Any:
        moved = [app.to_tensor(a + step if i == place else a) for i, a in enumerate(arrays)]
        with as_python():
            return total(f(*moved), app.to_tensor(WEIGHTS)).numpy()

    slopes = [np.zeros_like(a) for a in arrays]
    for place, slope in enumerate(slopes):
        for index in np.ndindex(slope.shape):
            step = np.zeros_like(slope)
            step[index] = 1e-5
            slope[index] = (value(place, step) - value(place, -step)) / 2e-5
    return [value(), *slopes]


def assert_right(text: str, names: Sequence[str], *runs: Callable[[Any, list[np.ndarray]], list[np.ndarray]]) -> None:
    for name in names:
        f, arrays = function(text, name)
        for run in runs:
            for actual, right in zip(run(f, arrays), expected(text), strict=True):
                np.testing.assert_allclose(actual, right, rtol=1e-5, atol=1e-6, err_msg=name)


def by_reference(f: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return in_program(f, arrays, "reference")


def compiled(f: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return in_program(f, arrays, "compiled")


SOME_OR_ALL = pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.soak)])


@SOME_OR_ALL
@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("place", NUMBERS)
@pytest.mark.slow
def test_the_gradient_of_numbers_is_right_whatever_the_names_in(place: str, step: int):
    assert_right(NUMBERS[place], NAMES[::step], on_tensors)
    assert_right(NUMBERS[place], FEW, by_reference)


@SOME_OR_ALL
@pytest.mark.parametrize("place", ARRAYS)
def test_the_gradient_of_arrays_is_right_whatever_the_names_in(place: str, step: int):
    assert_right(ARRAYS[place], NAMES[::step], on_tensors)
    assert_right(ARRAYS[place], FEW, by_reference)


@pytest.mark.parametrize("place", TRACED)
def test_a_traced_function_is_right_whatever_the_name_of(place: str):
    names = [*FEW, "values", "value", "item", "stop", "start", "result", "y", "dy", "name"]
    assert_right(TRACED[place], names, on_tensors)


@pytest.mark.slow
def test_compiled_gradients_are_right_whatever_the_name():
    assert_right(NUMBERS["a derived gradient"], ["dout"], compiled)
    assert_right(NATIVE["a result of a loop"], ["type"], compiled)


@pytest.mark.soak
@pytest.mark.parametrize("name", FEW)
def test_all_compiled_gradients_are_right_whatever_the_name_of_any(name: str):
    for text in (*NUMBERS.values(), *NATIVE.values()):
        assert_right(text, [name], on_tensors, compiled)


@pytest.mark.slow
def test_variables_of_a_program_may_have_the_names_of_generated_source():
    names = ["i0", "i1", "row", "rows", "n", "np", "step", "tile", "range", "x y", "for", "u"]
    arrays = [X + place for place in range(len(names))]
    with static.program_guard(static.Program(), static.Program()):
        variables = [static.data(name, X.shape, "float64") for name in names]
        fetched = app.concat([(v * v).sum(axis=0) for v in variables], axis=0)
        feed = dict(zip(names, arrays, strict=True))
        result = static.Executor(engine="compiled").run(static.default_main_program(), feed, [fetched])[0]
    np.testing.assert_allclose(result, np.concatenate([(a * a).sum(axis=0) for a in arrays]))


# Names that could mean two things


def test_a_gradient_and_an_input_of_one_name_are_refused_with_the_line_of_backward():
    scaled = custom_op(lambda x, dout: x * dout, name="scaled")
    error = r"its backward \(test_awkward_names.py:\d+\) takes 'dout', which is an input or a setting and also the grad"
    with pytest.raises(OperatorError, match=rf"operator scaled \(test_awkward_names.py:\d+\): {error}"):
        scaled.backward(lambda x, dout: (dout, x))
    powers = custom_op(lambda x, db=1.0: (x, x * db), name="powers", outputs=("a", "b"))
    with pytest.raises(OperatorError, match="takes 'db', which is an input or a setting and also the gradient of the"):
        powers.backward(lambda x, da, db: da + db)


@pytest.mark.parametrize("outputs", [("x", "other"), ("by", "other"), ("same", "same")])
def test_an_output_with_the_name_of_another_value_is_refused(outputs: tuple[str, str]):
    with pytest.raises(OperatorError, match=rf"operator moved .*: its output '{outputs[0]}' has the name of another"):
        custom_op(lambda x, by=1.0: (x, x + by), name="moved", outputs=outputs)


def test_a_variable_of_a_traced_function_cannot_have_a_name_that_converted_source_adds():
    text = "@_to_static\ndef f(x, NAME):\n    return x if x.sum() > 0 else NAME\n"
    f, _ = function(text, "_jit_values")
    with pytest.raises(
        ProgramError, match=r"<awkward \d+>:\d+: a traced function cannot have a variable '_jit_values'"
    ):
        f(app.to_tensor(X), app.to_tensor(Z))
