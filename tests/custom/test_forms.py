"""Functions of whole arrays in plain NumPy are compiled, where nothing but the last digits can tell that they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from modules_of_text import module_of_text

import app
from app import static
from app.derivative.arrays import written_out
from app.derivative.arrays.whole import WholeReader
from app.engine.compiled.engine import compile_program
from app.errors import GradientError
from app.graph.defaults import static_mode
from app.ops.spec import Spec

ROWS = np.random.default_rng(0).uniform(0.3, 1.7, (4, 6))
PLACES = np.array([1, 0])
SCALE = 2.0


def softmax(x: Any, sharpness: float = 1.0) -> Any:
    powers = np.exp(sharpness * (x - x.max(axis=-1, keepdims=True)))
    return powers / powers.sum(axis=-1, keepdims=True)


def in_groups(x: Any, groups: int = 2) -> Any:
    parts = x.reshape(x.shape[0], groups, x.shape[1] // groups)
    return ((parts - parts.mean(axis=2, keepdims=True)) / (parts.std(axis=2, keepdims=True) + 0.1)).reshape(x.shape)


def rotated(x: Any) -> Any:
    half = x.shape[-1] // 2
    angles = np.outer(np.arange(x.shape[0]), 1.0 / 10 ** np.arange(half))
    a, b = x[:, :half], x[:, half:]
    return np.concatenate([a * np.cos(angles) - b, a * np.sin(angles) + b], axis=1)


def scaled(x: Any) -> Any:
    return np.cumsum(x, axis=1) * SCALE


def printing(x: Any) -> Any:
    print("called")
    return np.cumsum(x, axis=1)


WHOLE = {
    "x / x.sum(axis=1, keepdims=True)": True,
    "np.maximum(x, 0) @ x.T": True,
    "x[:, 0] * x[..., -1] + x.shape[0]": True,
    "x[:, 1:3] + x[:, :x.shape[1] // 3]": True,
    "np.where(x > 1, x, x.mean())": True,
    "x.astype(np.float64) * 2": True,
    "x[:, 6]": False,  # an IndexError
    "x[:, :9]": False,  # of 6 columns
    "x[:, np.array([0, 1])]": False,
    "x[2:3] * x[:, 1:2]": True,
    "x + x[:, :4].T": False,
    "x * np.sort(x)": False,
    "x.astype(np.float32) * 1.5": False,
    "x * np.random.normal()": False,
    "np.array([row[0] for row in x])": False,
}
"""What loops may take the place of, for an array of 4 rows and 6 columns."""


@pytest.mark.parametrize("text", WHOLE)
def test_loops_take_the_place_of_whole_arrays_and_of_nothing_that_numpy_may_refuse(text: str):
    function = module_of_text(f"import numpy as np\ndef f(x):\n    return {text}\n").f
    results = [Spec(function(ROWS).shape, "float64")] if WHOLE[text] else [Spec((4, 6), "float64")]

    def loops() -> Any:
        return written_out(function, Spec((4, 6), "float64"), reading=lambda f, specs: WholeReader(f, specs, results))

    if WHOLE[text]:
        np.testing.assert_allclose(loops()(ROWS), function(ROWS), rtol=1e-12)
    else:
        with pytest.raises(GradientError):
            loops()


@pytest.mark.parametrize(("function", "settings"), [(softmax, [1.0]), (in_groups, [2]), (rotated, [])])
def test_loops_take_the_place_of_several_lines(function: Any, settings: list[Any]):
    spec = Spec((4, 6), "float64")
    loops = written_out(function, spec, *settings, reading=lambda f, specs: WholeReader(f, specs, [spec]))
    np.testing.assert_allclose(loops(ROWS, *settings), function(ROWS), rtol=1e-12)


@pytest.mark.parametrize(
    "lines",
    ["if x.sum() > 0:\n        raise ValueError('large')", "assert x.sum() > 0", "print(x)", "NOTES.append(x)"],
)
def test_what_does_more_than_compute_stays_python(lines: str):
    function = module_of_text(f"NOTES = []\ndef f(x):\n    {lines}\n    return x * x.sum()\n").f
    spec = Spec((4, 6), "float64")
    with pytest.raises(GradientError):
        written_out(function, spec, reading=lambda f, specs: WholeReader(f, specs, [spec]))


def run(engine: str, function: Any, array: np.ndarray, **settings: Any) -> tuple[np.ndarray, str]:
    """The result for an open number of rows, and how the compiled engine runs the function."""
    main = static.Program()
    with static.program_guard(main, static.Program()), static_mode():
        x = static.data("x", [None, *array.shape[1:]], array.dtype.name)
        y = app.custom_op(function)(x, **settings)
    (result,) = static.Executor(engine=engine).run(main, feed={"x": array}, fetch_list=[y])
    native = compile_program(main, [y.name])
    return result, native if isinstance(native, str) else native.lowered.steps[-1].verdict


@pytest.mark.parametrize(
    ("function", "settings"),
    [
        (softmax, {"sharpness": 2.0}),
        pytest.param(in_groups, {"groups": 3}, marks=pytest.mark.soak),
        pytest.param(rotated, {}, marks=pytest.mark.soak),
    ],
)
def test_numpy_functions_are_compiled_and_agree_with_numpy(function: Any, settings: dict[str, Any]):
    for array in (ROWS.astype(np.float32), ROWS[:3].astype(np.float32)):
        result, verdict = run("compiled", function, array, **settings)
        assert verdict.startswith("compiled: ")
        np.testing.assert_allclose(result, function(array, **settings), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("row_by_row", "verdict"), [(False, "compiled: "), (True, "Python call: ")])
def test_a_function_declared_row_by_row_may_get_any_number_of_rows(row_by_row: bool, verdict: str):
    main = static.Program()
    with static.program_guard(main, static.Program()), static_mode():
        x = static.data("x", [64, 6], "float64")
        y = app.custom_op(lambda x: x * x[63], row_by_row=row_by_row)(x)  # which is declared wrongly
    native = compile_program(main, [y.name])
    assert not isinstance(native, str)
    assert native.lowered.steps[-1].verdict.startswith(verdict)


def test_the_loops_follow_a_global_variable(monkeypatch: pytest.MonkeyPatch):
    for scale in (2.0, 5.0):
        monkeypatch.setitem(scaled.__globals__, "SCALE", scale)
        result, verdict = run("compiled", scaled, ROWS)
        assert verdict.startswith("compiled: ")
        np.testing.assert_allclose(result, np.cumsum(ROWS, axis=1) * scale, rtol=1e-12)


def test_a_function_that_prints_and_results_of_another_size_stay_python(capsys: pytest.CaptureFixture[str]):
    _, verdict = run("compiled", printing, ROWS)
    assert verdict == "Python call: its function is plain Python"
    assert "called" in capsys.readouterr().out
    result, verdict = run("compiled", lambda x: np.concatenate([x, x]), ROWS)
    assert not verdict.startswith("compiled: ")
    assert result.shape == (8, 6)
