"""Functions that work on vectors: as exact as NumPy's, called by compiled loops alone, and part of code's name."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import tanh as tanh_by_itself
from typing import Any

import numpy as np
import pytest
from numba import njit, types

import app
from app import static
from app.custom import custom_op
from app.engine.compiled import linkable, objects, vector_math
from app.engine.compiled.array_loop import ArrayLoop

pytestmark = pytest.mark.slow

NAMES = ("exp", "expm1", "tanh", "log", "log1p")
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, 3e38, -3e38, 0.625, -0.625, 0.5]
EDGES = [88.72, 88.73, -87.4, -103.9, -104.0, 709.78, 709.79, -708.4, -745.1, -745.14, 5e-324, 1.79e308, -1 + 1e-16]


def over_all(function: Any, x: np.ndarray) -> np.ndarray:
    """What compiled code gives, which uses vectors."""
    return ArrayLoop(function, [x.dtype], {}, {}, 1)(x)[0]


def units_off(actual: np.ndarray, right: np.ndarray) -> float:
    """How many units in the last place results are off at most. What is no number, or infinite, must be the same."""
    rounded = right.astype(actual.dtype)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(rounded))
    np.testing.assert_array_equal(np.isfinite(actual), np.isfinite(rounded))
    number = ~np.isnan(rounded)
    np.testing.assert_array_equal(np.signbit(actual[number]), np.signbit(rounded[number]))
    finite = np.isfinite(rounded)
    unit = np.spacing(np.abs(rounded[finite])).astype(right.dtype)
    return float(np.max(np.abs(actual[finite].astype(right.dtype) - right[finite]) / unit))


def floats32() -> np.ndarray:
    """Numbers of every size: one of 8209 in the order of their bits."""
    bits = np.arange(0, 2**32, 8209, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([bits.view(np.float32), np.array(SPECIAL + EDGES[:5], np.float32)])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [*NAMES, "erf"])
def test_functions_are_exact_to_a_unit_and_a_half_in_single_precision(name: str):
    x = floats32()
    from scipy import special  # not above: it takes long to load

    right = special.erf(x.astype(np.float64)) if name == "erf" else getattr(np, name)(x.astype(np.float64))
    assert units_off(over_all(getattr(vector_math, f"{name}_32"), x), right) < 1.5


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
def test_functions_are_exact_to_three_units_in_double_precision(name: str):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, 150_000, dtype=np.uint64).view(np.float64)
    near = [rng.uniform(-750, 750, 100_000), rng.uniform(-1, 2, 100_000), np.array(SPECIAL + EDGES)]
    x = np.concatenate([bits, *near])
    right = getattr(np, name)(x.astype(np.longdouble))
    assert units_off(over_all(getattr(vector_math, f"{name}_64"), x), right) < 3


# Which functions call them

calls_by_module: Any = lambda x: np.exp(x) + math.exp(x) + np.log(x)  # noqa: E731
calls_by_name: Any = lambda x: tanh_by_itself(x)  # noqa: E731
calls_none: Any = lambda x: np.maximum(x, 0) + np.sin(x)  # noqa: E731
C_LIBRARY = ("@llvm.exp", "@llvm.log", "@tanh", "@erff", "@log1p")


@njit
def helper(x: Any) -> Any:
    return np.log1p(x)


def around(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(x)


def linked(function: Any, number: Any) -> str:
    """The code of a function of numbers as the engine links it."""
    code = linkable.linkable(function, (number,))
    assert code is not None
    return str(code._get_module_for_linking())


@pytest.mark.parametrize("function", [calls_by_module, calls_by_name, around(math.erf), around(np.exp), around(helper)])
def test_functions_of_numbers_call_functions_on_vectors_for_the_c_library_s(function: Any):
    assert not any(call in linked(function, types.float32) for call in C_LIBRARY)
    if function(0.3) != math.erf(0.3):  # which is left alone in double precision
        assert not any(call in linked(function, types.float64) for call in C_LIBRARY)


def test_functions_with_declared_types_and_of_whole_numbers_call_them_too():
    for_double = njit("float64(float64)")(lambda x: np.exp(x))
    assert "@llvm.exp" not in linked(for_double, types.float64)
    assert "@llvm.exp" not in linked(calls_by_module, types.int64)


def test_other_functions_and_code_that_numba_compiles_elsewhere_are_unchanged():
    assert "opsmith_sin" not in linked(calls_none, types.float32)
    of_array = linkable.linkable(around(np.tanh), (types.Array(types.float32, 1, "C"),))
    assert of_array is not None
    assert not of_array.is_inlined
    assert "tanhf" in of_array.needs
    jitted = njit(calls_by_module)
    jitted(np.float32(1))
    linked(calls_by_module, types.float32)
    assert "llvm.exp.f32" in "".join(jitted.inspect_llvm().values())


# Inside a Program


def test_a_loop_that_calls_them_is_made_of_instructions_on_vectors(monkeypatch: pytest.MonkeyPatch):
    modules, linked = [], objects._objects
    factor = float(np.random.default_rng().uniform(1, 2))  # so that no cache has the code

    def noted(library: Any, *others: Any) -> Any:
        result = linked(library, *others)
        modules.append(str(library._final_module))
        return result

    monkeypatch.setattr(objects, "_objects", noted)

    @custom_op(elementwise=True)
    def swish_of_my_own(x):
        return x / (1 + math.exp(-x * factor))

    x = static.data("x", [None, 64])
    y = app.tanh(swish_of_my_own(x)) * x
    feed = {"x": np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)}
    values = [static.Executor(engine=e).run(feed=feed, fetch_list=[y])[0] for e in ("compiled", "reference")]
    np.testing.assert_allclose(*values, rtol=1e-5, atol=1e-7)
    assert len(modules) == 2  # the Program, and the loop of the reference engine
    for code in modules:
        assert "fdiv <" in code
        assert "llvm.exp" not in code
        assert "@tanhf" not in code
