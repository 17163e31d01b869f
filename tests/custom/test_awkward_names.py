"""Users' inputs, settings, variables and outputs may have the names that the framework uses for its own.

Each operator below is written with `NAME` in a place; with every awkward name in it, values and gradients are those of
the operator with a harmless name, whose gradients are compared with finite differences.
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

import app
from app import custom_op, static
from app.custom.numba_functions import interpreted
from app.errors import OperatorError, ProgramError

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
    "an input": "@_op(elementwise=True)\ndef f(x, NAME):\n    return x * NAME * NAME + _math.exp(0.1 * x)\n",
    "the first input": "@_op(elementwise=True)\ndef f(NAME, x):\n    return _np.tanh(NAME) * x * NAME\n",
    "a setting": "@_op(elementwise=True)\ndef f(x, NAME=1.5):\n    return _np.abs(x) * NAME * x + NAME\n",
    "a keyword-only setting": "@_op(elementwise=True)\ndef f(x, *, NAME=1.5):\n    return x * NAME * x + NAME\n",
    "a variable": "@_op(elementwise=True)\ndef f(x):\n"
    "    NAME = x * x\n    NAME = NAME * x\n    return NAME + _math.exp(0.1 * NAME) + x\n",
    "a global": "NAME = 1.5\n@_op(elementwise=True)\ndef f(x):\n    return x * NAME * x + NAME\n",
    "a variable of a closure": "def outer(NAME):\n    @_op(elementwise=True)\n    def f(x):\n"
    "        return x * NAME * x + NAME\n    return f\nf = outer(1.5)\n",
    "a helper": "def NAME(x):\n    return x * x\n@_op(elementwise=True)\ndef f(x):\n    return NAME(x) * x\n",
    "an input of a helper": "def h(NAME, z):\n    return z * NAME\n@_op(elementwise=True)\ndef f(x):\n"
    "    return h(x * x, x)\n",
    "its own name": "@_op(elementwise=True)\ndef NAME(x):\n    return x * x * x\nf = NAME\n",
    "an output": "@_op(elementwise=True, outputs=['NAME', 'second'])\ndef f(x):\n    return x * x * x, x * x\n",
    "an input of backward": "@_op(elementwise=True)\ndef f(x, NAME):\n    return x * NAME * NAME\n"
    "@f.backward\ndef _f(x, NAME, dz):\n    return dz * NAME * NAME, 2 * x * NAME * dz\n",
    "a setting of backward": "@_op(elementwise=True)\ndef f(x, NAME=1.5):\n    return x * NAME * x\n"
    "@f.backward\ndef _f(dz, NAME, x):\n    return dz * NAME * 2 * x\n",
    "an output of backward": "@_op(elementwise=True, outputs='NAME')\ndef f(x):\n    return x * x * x\n"
    "@f.backward\ndef _f(x, NAME, dNAME):\n    return dNAME * 3 * NAME / x\n",
}
"""Operators on single numbers."""
ARRAYS = {
    "an input": "@_op\ndef f(x, NAME):\n    return x * NAME * NAME\n"
    "@f.backward\ndef _f(x, NAME, dz):\n    return dz * NAME * NAME, 2 * x * NAME * dz\n",
    "a setting": "@_op\ndef f(x, NAME=1.5):\n    return x * NAME * x\n"
    "@f.backward\ndef _f(dz, NAME, x):\n    return dz * NAME * 2 * x\n",
    "a keyword-only setting": "@_op\ndef f(x, *, NAME=1.5):\n    return x * NAME * x\n"
    "@f.backward\ndef _f(dz, x, *, NAME):\n    return dz * NAME * 2 * x\n",
    "an output": "@_op(outputs=['NAME', 'second'])\ndef f(x):\n    return x * x * x, x * x\n"
    "@f.backward\ndef _f(x, NAME, dNAME, dsecond):\n    return dNAME * 3 * NAME / x + dsecond * 2 * x\n",
    "an argument of py_func": "def _fw(x, NAME):\n    return x * NAME * NAME\n"
    "def _bw(x, NAME, z, dz):\n    return dz * NAME * NAME, 2 * x * NAME * dz\n"
    "def f(x, z):\n    return _py_func(_fw, [x, z], _Spec(x.shape, 'float64'), _bw)\n",
    "an argument of a PyLayer": "class F(_PyLayer):\n    @staticmethod\n    def forward(context_, x, NAME):\n"
    "        context_.save_for_backward(x, NAME)\n        return x * NAME * NAME\n    @staticmethod\n"
    "    def backward(context_, dz):\n        x, NAME = context_.saved_tensor()\n"
    "        return dz * NAME * NAME, 2 * x * NAME * dz\n"
    "def f(x, z):\n    return F.apply(x, NAME=z)\n",
    "a setting of a PyLayer": "class F(_PyLayer):\n    @staticmethod\n    def forward(context_, x, NAME=1.5):\n"
    "        context_.NAME = NAME\n        context_.save_for_backward(x)\n        return x * x * NAME\n"
    "    @staticmethod\n    def backward(context_, dz):\n        (x,) = context_.saved_tensor()\n"
    "        return dz * context_.NAME * 2 * x\n"
    "def f(x):\n    return F.apply(x, NAME=2.5)\n",
    "the context of a PyLayer": "class F(_PyLayer):\n    @staticmethod\n    def forward(NAME, x):\n"
    "        NAME.save_for_backward(x)\n        return x * x\n    @staticmethod\n    def backward(NAME, dz):\n"
    "        (x,) = NAME.saved_tensor()\n        return dz * 2 * x\nf = F.apply\n",
}
"""Operators on arrays and on Tensors."""
NATIVE = {
    "an input": "@_op\n@_njit\ndef f(x, NAME):\n    return _np.maximum(x, 0.1 * NAME) * x\n"
    "@f.backward\n@_njit\ndef _f(x, NAME, dz):\n    first = x > 0.1 * NAME\n"
    "    return _np.where(first, 2 * x, 0.1 * NAME) * dz, _np.where(first, 0, 0.1 * x) * dz\n",
    "a setting": "@_op\n@_njit\ndef f(x, NAME=1.5):\n    return x * NAME * x\n"
    "@f.backward\n@_njit\ndef _f(dz, x, NAME):\n    return dz * NAME * 2 * x\n",
    "a result of a loop": "@_op\n@_njit\ndef f(x):\n    NAME = _np.zeros_like(x)\n    for j in range(x.size):\n"
    "        if x.flat[j] > 0:\n            NAME.flat[j] = x.flat[j] * x.flat[j]\n    return NAME\n"
    "@f.backward\n@_njit\ndef _f(x, dz):\n    return dz * _np.maximum(x, 0) * 2\n",
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
    """The function of a text with this name in it, and the arrays to call it with."""
    source = HEAD + re.sub("NAME", name, text)
    file = f"<awkward {next(_numbers)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    made: dict[str, Any] = {"__name__": "awkward"}
    exec(compile(source, file, "exec"), made)
    two = re.search(r"f\((x, NAME|NAME, x|x, z)\):", text)
    return made["f"], [X, Z] if two else [X]


def total(results: Any, weights: Any) -> Any:
    """A number that depends on all elements of all results."""
    each = results if isinstance(results, (tuple, list)) else [results]
    found = [(result * weights * (place + 1.0)).sum() for place, result in enumerate(each)]
    return found[0] if len(found) == 1 else found[0] + found[1]


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
            for found, right in zip(run(f, arrays), expected(text), strict=True):
                np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6, err_msg=name)


def by_reference(f: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return in_program(f, arrays, "reference")


def compiled(f: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return in_program(f, arrays, "compiled")


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreted, "on", True)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("place", NUMBERS)
def test_the_gradient_of_numbers_is_right_whatever_the_name_of(place: str):
    assert_right(NUMBERS[place], NAMES, on_tensors)
    assert_right(NUMBERS[place], FEW, by_reference)


@pytest.mark.parametrize("place", ARRAYS)
def test_the_gradient_of_arrays_is_right_whatever_the_name_of(place: str):
    assert_right(ARRAYS[place], NAMES, on_tensors)
    assert_right(ARRAYS[place], FEW, by_reference)


@pytest.mark.parametrize("place", TRACED)
def test_a_traced_function_is_right_whatever_the_name_of(place: str):
    names = [*FEW, "values", "value", "item", "stop", "start", "result", "y", "dy", "name"]
    assert_right(TRACED[place], names, on_tensors)


@pytest.mark.slow
def test_compiled_gradients_are_right_whatever_the_name():
    assert_right(NUMBERS["a global"], ["dout"], compiled)
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
        fetched = app.concat([app.exp(v * 0.1).sum(axis=0) for v in variables], axis=0)
        feed = dict(zip(names, arrays, strict=True))
        found = static.Executor(engine="compiled").run(static.default_main_program(), feed, [fetched])[0]
    np.testing.assert_allclose(found, np.concatenate([np.exp(a * 0.1).sum(axis=0) for a in arrays]))


# Names that could mean two things


def test_a_gradient_and_an_input_of_one_name_are_refused_with_the_line_of_backward():
    scaled = custom_op(lambda x, dout: x * dout, name="scaled")
    words = r"its backward \(test_awkward_names.py:\d+\) takes 'dout', which is an input or a setting and also the grad"
    with pytest.raises(OperatorError, match=rf"operator scaled \(test_awkward_names.py:\d+\): {words}"):
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
