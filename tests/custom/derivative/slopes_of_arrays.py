"""Derived gradients of functions on arrays beside central differences, along a random direction."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np

from app.custom.derivative.arrays import derive

_numbers = count(1)
OUTSIDE = (IndexError, OverflowError, ValueError, NameError)


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


def function_of_text(text: str) -> FunctionType:
    """The function `f` of a module's text, which can be read again."""
    file = f"<arrays {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"__name__": "arrays_of_text"}
    exec(compile(text, file, "exec"), space)
    return space["f"]


def floats(arguments: Sequence[Any]) -> list[int]:
    return [i for i, a in enumerate(arguments) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]


def weights_of(function: Callable[..., Any], arguments: Sequence[Any], seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    made = [random.normal(size=np.shape(result)) for result in listed(function(*arguments))]
    return [each if np.ndim(each) else float(each) for each in made]


def along(function: Callable[..., Any], arguments: Sequence[Any], weights: Sequence[Any], step: float) -> list[float]:
    """The slopes of the weighted results along a random direction, by two steps."""
    random = np.random.default_rng(1)
    directions = {i: random.normal(size=arguments[i].shape) for i in floats(arguments)}

    def value(by: float) -> float:
        moved = [a + by * directions[i] if i in directions else a for i, a in enumerate(arguments)]
        return sum(float(np.sum(r * w)) for r, w in zip(listed(function(*moved)), weights, strict=True))

    return [(value(h) - value(-h)) / (2 * h) for h in (step, step / 3)]


def derived_along(
    function: Callable[..., Any], gradient: Callable[..., Any], arguments: Sequence[Any], weights: Sequence[Any]
) -> float:
    """The same slope by a derived gradient."""
    random = np.random.default_rng(1)
    directions = [random.normal(size=arguments[i].shape) for i in floats(arguments)]
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    settings = [a for a in arguments if not isinstance(a, np.ndarray)]
    gradients = listed(gradient(*arrays, *weights, *settings))
    return sum(float(np.sum(g * d)) for g, d in zip(gradients, directions, strict=True))


def agrees(function: Callable[..., Any], *arguments: Any, orders: int = 2) -> bool:
    """Whether the derived gradient, and its own, are right."""
    for order in range(orders):
        weights = weights_of(function, arguments)
        gradient = derive(function, *arguments).function
        slope, _ = along(function, arguments, weights, 1e-5)
        if abs(derived_along(function, gradient, arguments, weights) - slope) > 1e-6 * 10**order * (1 + abs(slope)):
            return False
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        settings = [a for a in arguments if not isinstance(a, np.ndarray)]
        function, arguments = gradient, (*arrays, *weights, *settings)
    return True


def verdict(function: Callable[..., Any], arguments: Sequence[Any], orders: int) -> str:
    """ok or wrong; kink, if there are no slopes to compare; invalid, if the function fails."""
    for order in range(orders):
        try:
            weights = weights_of(function, arguments)
            one, other = along(function, arguments, weights, 1e-6)
        except OUTSIDE:
            return "invalid"
        near = 1e-5 * 10**order
        if not np.isfinite(one) or abs(one) > 1e6 or abs(one - other) > near * (1 + abs(one)):
            return "kink"
        gradient = derive(function, *arguments).function
        if abs(derived_along(function, gradient, arguments, weights) - one) > 3 * near * (1 + abs(one)):
            return "wrong"
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        settings = [a for a in arguments if not isinstance(a, np.ndarray)]
        function, arguments = gradient, [*arrays, *weights, *settings]
    return "ok"
