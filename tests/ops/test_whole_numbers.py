"""Whole numbers at the ends of their types: both engines give what NumPy gives, or refuse what it refuses."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import AppError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
TYPES = ("int8", "uint8", "int16", "int32", "int64")
TWO: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "//": (lambda x, y: x // y, np.floor_divide),
    "%": (lambda x, y: x % y, np.remainder),
    "power": (lambda x, y: x ** app.abs(app.maximum(y, 0)), lambda x, y: x ** np.maximum(y, 0)),
    "+": (lambda x, y: x + y, np.add),
    "-": (lambda x, y: x - y, np.subtract),
    "*": (lambda x, y: x * y, np.multiply),
}
ONE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "abs": (app.abs, np.abs),
    "negative": (lambda x: -x, np.negative),
    "sign": (app.sign, np.sign),
    "square": (app.square, np.square),
}
FLOATS = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 300.7, -300.7, 2.5, -2.5, -0.5, 3e9, 0.0])


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of the numbers that are at an end of a type, or near 0."""
    info = np.iinfo(dtype)
    near = [n for n in (-3, -1, 0, 1, 2, 7, 33) if n >= info.min]
    numbers = sorted({info.min, info.min + 1, *near, info.max - 1, info.max})
    first, second = zip(*itertools.product(numbers, numbers), strict=True)
    return np.array(first, dtype), np.array(second, dtype)


@pytest.mark.parametrize(
    ("engine", "types"),
    [
        ("reference", TYPES),
        ("compiled", ("uint8",)),
        pytest.param("compiled", ("int64",), marks=pytest.mark.soak),  # each operator of each type takes a while
    ],
)
def test_every_operator_at_the_ends_of_every_type(engine: str, types: Sequence[str]):
    program, feed = static.Program(), {"floats": FLOATS}
    expected: list[tuple[str, Any]] = []
    fetch = []
    with static.program_guard(program, static.Program()):
        floats = static.data("floats", [len(FLOATS)], "float64")
        for dtype in types:
            x, y = feed[f"{dtype}_x"], feed[f"{dtype}_y"] = pairs(dtype)
            variables = [static.data(f"{dtype}_{name}", x.shape, dtype) for name in "xy"]
            for name, (ours, numpy_s) in TWO.items():
                fetch.append(ours(*variables))
                expected.append((f"{dtype} {name}", numpy_s(x, y)))
            for name, (ours, numpy_s) in ONE.items():
                fetch.append(ours(variables[0]))
                expected.append((f"{dtype} {name}", numpy_s(x)))
            fetch.append(floats.astype(dtype))
            expected.append((f"{dtype} of floats", FLOATS.astype(dtype)))
    results = static.Executor(engine=engine).run(program, feed, fetch)
    for result, (name, right) in zip(results, expected, strict=True):
        assert result.dtype == right.dtype, name
        np.testing.assert_array_equal(result, right, err_msg=name)


def run(engine: str, shape: list[int | None], dtype: str, function: Callable[[Any], Any], x: Any) -> np.ndarray:
    program = static.Program()
    with static.program_guard(program, static.Program()):
        out = function(static.data("x", shape, dtype))
    result: np.ndarray = static.Executor(engine=engine).run(program, {"x": x}, [out])[0]
    return result


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_a_negative_power_is_refused(engine: str):
    x = np.array([1, 2, -1])
    with pytest.raises(AppError, match=r"operator pow.*Integers to negative integer powers are not allowed"):
        run(engine, [None], "int64", lambda x: (x + 1) ** x, x)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_an_extreme_of_nothing_is_refused(name: str, engine: str):
    nothing = np.zeros((0, 3), "float32")
    with pytest.raises(ShapeError, match=rf"operator {name} .*\[0, 3\] has no elements along axis 0"):
        run(engine, [None, 3], "float32", lambda x: getattr(app, name)(x, axis=0), nothing)
    assert run(engine, [None, 3], "float32", lambda x: getattr(app, name)(x, axis=1), nothing).shape == (0,)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_whole_numbers_that_float64_has_not_keep_their_last_digit(engine: str):
    x = np.array([2**53 + 1, 2**62 + 3, -(2**53) - 1, 7, -5])

    def results(x: Any) -> Any:
        clipped = app.clip(x, min=-6.0, max=2.0**62), app.clip(x, max=2**62 + 1)
        return app.stack([app.round(x), *clipped, app.increment(x * 1), app.increment(x * 1, 2.0)])

    expected = [x, np.clip(x, -6, 2**62), np.minimum(x, 2**62 + 1), x + 1, x + 2]
    np.testing.assert_array_equal(run(engine, [len(x)], "int64", results, x), expected)


@pytest.mark.parametrize(
    "function", [lambda x: app.clip(x, min=-5), lambda x: app.clip(x, max=1.5), lambda x: app.increment(x, 300)]
)
def test_a_number_that_an_integer_type_does_not_have_is_refused_everywhere(function: Callable[[Any], Any]):
    expected = r"operator (clip|increment).*of uint8 (lie between 0 and 255|are whole numbers), found (-5|1\.5|300)"
    with pytest.raises(AppError, match=expected):
        function(app.to_tensor(np.array([1, 2], "uint8")))
    with pytest.raises(AppError, match=expected):
        function(static.data("x", [None], "uint8"))
