"""Derived gradients of functions on arrays beside central differences, along a random direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from custom.array_slopes import listed

from app.custom.derivative.arrays import Derived, derive

_derived: dict[Any, tuple[Any, Derived]] = {}


def derived_of(function: Callable[..., Any], *arguments: Any) -> Derived:
    """The derived gradient, which is derived once for each number of axes and types of the arguments."""
    specs = [(a.ndim, a.dtype.str) if isinstance(a, np.ndarray) else a for a in arguments]
    key = id(function), str(specs)
    if key not in _derived:
        _derived[key] = function, derive(function, *arguments)
    return _derived[key][1]


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
        gradient = derived_of(function, *arguments).function
        slope, _ = along(function, arguments, weights, 1e-5)
        if abs(derived_along(function, gradient, arguments, weights) - slope) > 1e-6 * 10**order * (1 + abs(slope)):
            return False
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        settings = [a for a in arguments if not isinstance(a, np.ndarray)]
        function, arguments = gradient, (*arrays, *weights, *settings)
    return True
