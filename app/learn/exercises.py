"""The exercises, and what is expected of each. Their texts are the docstrings of the learner's files."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Exercise:
    """One exercise: what the operator computes, and what must hold for it."""

    file: str
    operator: str
    expected: Callable[..., Any]
    """Computes what the operator should, with NumPy."""
    shapes: Sequence[Sequence[tuple[int, ...]]]
    """Shapes of inputs; the first are those that the checks use."""
    settings: Sequence[dict[str, Any]] = ({},)
    numbers: Sequence[float] = (1.0,)
    """Factors of the inputs: large ones show overflows."""
    slope: Callable[..., Any] | None = None
    """The gradient of the sum of the result, where it is not the derivative."""
    may_use: Sequence[str] = ()
    """Names of `opsmith` that the solution may use, besides those of hooks."""
    native: str = ""
    """What the engine must make of it: "inlined" or "compiled"."""
    only: Sequence[str] = ()
    """The checks that are run; by default all."""
    derived: bool = False
    """Whether backward may be left to `elementwise=True`."""

    @property
    def number(self) -> int:
        return int(self.file[:2])

    def title(self, folder: Path) -> str:
        """The title in the docstring of the original file."""
        doc = ast.get_docstring(ast.parse((folder / self.file).read_text(encoding="utf-8"))) or ""
        return doc.partition("\n")[0].partition(" ")[2].rstrip(".")


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _log_sum_exp(x: np.ndarray) -> np.ndarray:
    most = x.max(axis=1)
    return most + np.log(np.exp(x - most[:, None]).sum(axis=1))


def _layer_norm(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * w


def _average(x: np.ndarray, keep: float = 0.75) -> np.ndarray:
    y, last = np.empty_like(x), np.zeros(len(x))
    for t in range(x.shape[1]):
        last = keep * last + (1 - keep) * x[:, t]
        y[:, t] = last
    return y


def _polar(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    square = x * x + y * y + 1
    return np.sqrt(square), square


_MATRIX, _ROW = (4, 6), (6,)
_SHAPED = ("gradient", "shapes", "types", "untouched", "repeatable", "engines")
"""The checks of an operator whose inputs have shapes of their own: others try them with shapes alike."""
_OF_TENSORS = ("exp", "log", "log1p", "tanh", "sigmoid", "add", "multiply", "subtract", "divide", "square")
EXERCISES = [
    Exercise("01_wrong_factor.py", "cube", lambda x: x**3, [[_MATRIX], [(7,)]]),
    Exercise("02_missing_term.py", "wave", lambda x: x * np.tanh(x), [[_MATRIX], [(7,)]]),
    Exercise(
        "03_two_inputs.py", "weighted_square", lambda x, w: x * x * w, [[_MATRIX, _MATRIX], [(3,), (3,)]], only=_SHAPED
    ),
    Exercise("04_broadcast.py", "add_row", lambda x, b: x + b, [[_MATRIX, _ROW], [(1, 3), (3,)]], only=_SHAPED),
    Exercise("05_kink.py", "hard_tanh", lambda x: np.clip(x, -1, 1), [[_MATRIX], [(7,)]]),
    Exercise(
        "06_straight_through.py",
        "rounded",
        lambda x: np.floor(4 * x + 0.5) / 4,
        [[_MATRIX], [(7,)]],
        slope=lambda x: (abs(x) <= 1) * 1.0,
    ),
    Exercise(
        "07_setting.py",
        "power",
        lambda x, exponent=2: x**exponent,
        [[_MATRIX], [(7,)]],
        [{}, {"exponent": 1}, {"exponent": 5}],
    ),
    Exercise("08_mean.py", "mean_of_rows", lambda x: x.mean(axis=1), [[_MATRIX], [(3, 1)]]),
    Exercise("09_two_outputs.py", "polar", _polar, [[_MATRIX, _MATRIX], [(7,), (7,)]], only=_SHAPED),
    Exercise("10_softmax.py", "softmax", _softmax, [[_MATRIX], [(2, 1)]], numbers=(1.0, 300.0)),
    Exercise("11_large_numbers.py", "log_sum_exp", _log_sum_exp, [[_MATRIX], [(2, 1)]], numbers=(1.0, 1000.0, -1000.0)),
    Exercise("12_layer_norm.py", "layer_norm", _layer_norm, [[_MATRIX, _ROW], [(2, 3), (3,)]], only=_SHAPED),
    Exercise("13_recursion.py", "average", _average, [[_MATRIX], [(2, 1)]], [{}, {"keep": 0.5}]),
    Exercise("14_second_derivative.py", "Cube", lambda x: x**3, [[_MATRIX], [(7,)]], may_use=_OF_TENSORS),
    Exercise("15_in_place.py", "rectified", lambda x: np.where(x < 0, x * 0.25, x), [[_MATRIX], [(7,)]]),
    Exercise("16_row_by_row.py", "centred", lambda x: x - x.mean(axis=-1, keepdims=True), [[_MATRIX], [(3, 1)]]),
    Exercise(
        "17_pylayer.py", "Mish", lambda x: x * np.tanh(np.log1p(np.exp(x))), [[_MATRIX], [(7,)]], may_use=_OF_TENSORS
    ),
    Exercise(
        "18_inlined.py", "soft_sign", lambda x: x / (1 + abs(x)), [[_MATRIX], [(7,)]], native="inlined", derived=True
    ),
    Exercise(
        "19_compiled.py",
        "running_maximum",
        lambda x: np.maximum.accumulate(x, axis=1),
        [[_MATRIX], [(3, 1)]],
        native="compiled",
    ),
    Exercise(
        "20_attention.py",
        "attention",
        lambda q, k, v: _softmax(q @ k.T) @ v,
        [[(4, 3), (5, 3), (5, 2)], [(1, 2), (1, 2), (1, 2)]],
        only=_SHAPED,
    ),
]
