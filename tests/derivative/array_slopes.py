"""The derivatives of functions on arrays by central differences, and how far those of a derived gradient are from them.

What is differentiated is one number: the sum of all results, each times a weight, as a backward pass has them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

STEPS = (1e-5, 3e-6)
"""Two, so that they do not agree beside a kink or a jump."""


def listed(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def weights_for(function: Callable[..., Any], arguments: Sequence[Any], seed: int = 0) -> list[Any]:
    """A gradient for each result of a function: random numbers, none near zero."""
    random = np.random.default_rng(seed)
    results = listed(function(*copied(arguments)))
    return [np.asarray(random.uniform(0.5, 1.5, np.shape(y)) * random.choice([-1, 1], np.shape(y))) for y in results]


def copied(arguments: Sequence[Any]) -> list[Any]:
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


def is_float_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def float_places(arguments: Sequence[Any]) -> list[int]:
    """The places of the arguments that get a gradient."""
    return [place for place, a in enumerate(arguments) if is_float_array(a)]


def gradient_arguments(
    gradient: Callable[..., Any], function: Callable[..., Any], arguments: Sequence[Any], weights: Sequence[Any]
) -> list[Any]:
    """The arguments of a derived gradient, in its order: those of the function by name, others are weights."""
    bound = inspect.signature(function).bind(*arguments)
    bound.apply_defaults()
    following = iter(weights)
    parameters = inspect.signature(gradient).parameters.items()
    names = [name for name, p in parameters if name in bound.arguments or p.default is p.empty]
    return [bound.arguments[name] if name in bound.arguments else next(following) for name in names]


def results_at(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, ...]:
    return listed(function(*copied(arguments)))


def weighted_difference(ahead: Sequence[Any], behind: Sequence[Any], weights: Sequence[Any]) -> float:
    """The difference of the weighted sums of results: of those that are equal, nothing is lost in rounding."""
    triples = zip(ahead, behind, weights, strict=True)
    return float(sum(np.sum(np.subtract(y, z, dtype=float) * w) for y, z, w in triples))


def central_differences(
    function: Callable[..., Any], arguments: Sequence[Any], weights: Sequence[Any]
) -> list[np.ndarray]:
    """The gradient of each array of floats; NaN for an element beside a kink."""
    gradients = []
    at = results_at(function, arguments)
    for place in float_places(arguments):
        gradient = np.zeros(arguments[place].shape)
        for index in np.ndindex(gradient.shape):
            slopes = []
            for step in STEPS:
                ahead, behind = (results_at(function, _moved(arguments, place, index, sign * step)) for sign in (1, -1))
                slopes.append(weighted_difference(ahead, behind, weights) / (2 * step))
                one_sided = [weighted_difference(*pair, weights) / step for pair in ((ahead, at), (at, behind))]
                if not np.isclose(*one_sided, rtol=1e-3, atol=1e-2):
                    slopes.append(np.nan)
            gradient[index] = slopes[0] if np.allclose(slopes, slopes[0], rtol=1e-4, atol=1e-5) else np.nan
        gradients.append(gradient)
    return gradients


def _moved(arguments: Sequence[Any], place: int, index: tuple[int, ...], step: float) -> list[Any]:
    moved = copied(arguments)
    moved[place][index] += step
    return moved


def largest_difference(gradients: Any, expected: Sequence[np.ndarray]) -> float:
    """The largest difference relative to 1 plus the slope, apart from elements beside a kink; infinite for NaN or for
    another shape."""
    gradients = listed(gradients)
    if [np.shape(g) for g in gradients] != [e.shape for e in expected]:
        return np.inf
    largest = 0.0
    for gradient, slope in zip(gradients, expected, strict=True):
        smooth = np.isfinite(slope)
        difference = np.abs(gradient - slope)[smooth] / (1 + np.abs(slope[smooth]))
        if np.isnan(difference).any():
            return np.inf
        largest = max(largest, float(difference.max(initial=0.0)))
    return largest
