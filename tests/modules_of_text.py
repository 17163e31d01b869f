"""Functions made of text that can be read again; and the slopes of functions, found by stepping."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Sequence
from itertools import count
from types import ModuleType
from typing import Any

import numpy as np

_numbers = count()


def module_of_text(text: str, **namespace: Any) -> Any:
    """A module made of text; `namespace` has the names that it has besides."""
    names = (f"module_of_text_{number}" for number in _numbers)
    module = ModuleType(next(name for name in names if f"{name}.py" not in linecache.cache))
    file = f"{module.__name__}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    vars(module).update(namespace)
    exec(compile(text, file, "exec", dont_inherit=True), vars(module))
    return module


def one_sided(function: Callable[..., float], at: Sequence[float], place: int, step: float) -> float | None:
    """The slope along one input on one side; None where the function gives no numbers, or has none there."""
    ahead = list(at)
    ahead[place] += step
    try:
        value = (function(*ahead) - function(*at)) / (ahead[place] - at[place])
    except (ArithmeticError, ValueError):
        return None
    return float(value) if math.isfinite(value) else None


def slope(function: Callable[..., float], at: Sequence[float], place: int) -> float | None:
    """The slope along one input; None where two steps do not agree on one, as beside a kink."""
    try:
        steps = (1e-2, 2e-2) if isinstance(function(*at), np.float32) else (1e-6, 1e-7)
    except (ArithmeticError, ValueError):
        return None
    slopes = []
    for step in steps:
        both = [one_sided(function, at, place, sign * step) for sign in (1, -1)]
        if None in both:
            return None
        slopes.append(sum(both) / 2)
        if not math.isclose(*both, rel_tol=1e-3, abs_tol=1e-3):
            return None
    near = math.isclose(*slopes, rel_tol=1e-4, abs_tol=1e-5)
    return slopes[0] if near and abs(slopes[0]) < 1e6 else None
