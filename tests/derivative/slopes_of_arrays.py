"""Derived gradients of functions on arrays beside central differences, along a random direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from derivative.array_slopes import (
    float_places,
    gradient_arguments,
    listed,
    results_at,
    weighted_difference,
    weights_for,
)

from app.derivative.arrays import Derived, derive

STEP = 1e-5
_derived: dict[Any, tuple[Any, Derived]] = {}


def derived_of(function: Callable[..., Any], *arguments: Any) -> Derived:
    """The derived gradient, which is derived once for each number of axes and types of the arguments."""
    specs = [(a.ndim, a.dtype.str) if isinstance(a, np.ndarray) else a for a in arguments]
    key = id(function), str(specs)
    if key not in _derived:
        _derived[key] = function, derive(function, *arguments)
    return _derived[key][1]


def slope_along(
    function: Callable[..., Any], arguments: Sequence[Any], weights: Sequence[Any], directions: dict[int, np.ndarray]
) -> float:
    """The slope of the weighted results by a central difference."""

    def results(by: float) -> tuple[Any, ...]:
        return results_at(function, [a + by * directions[i] if i in directions else a for i, a in enumerate(arguments)])

    return weighted_difference(results(STEP), results(-STEP), weights) / (2 * STEP)


def agrees(function: Callable[..., Any], *arguments: Any, orders: int = 2) -> bool:
    """Whether the derived gradient, and its own, are right."""
    random = np.random.default_rng(1)
    for order in range(orders):
        weights = [w if w.ndim else w[()] for w in weights_for(function, arguments)]
        gradient = derived_of(function, *arguments).function
        values = gradient_arguments(gradient, function, arguments, weights)
        directions = {i: random.normal(size=arguments[i].shape) for i in float_places(arguments)}
        slope = slope_along(function, arguments, weights, directions)
        gradients = zip(listed(gradient(*values)), directions.values(), strict=True)
        if abs(sum(float(np.sum(g * d)) for g, d in gradients) - slope) > 1e-6 * 10**order * (1 + abs(slope)):
            return False
        function, arguments = gradient, tuple(values)
    return True
