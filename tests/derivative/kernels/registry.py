"""What a kernel is, and all of them by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np
from derivative.array_slopes import central_differences, gradient_arguments, weights_for

from app.derivative.arrays import Derived, derive

Arguments = Callable[[], tuple[Any, ...]]


@dataclass
class Kernel:
    """A function on arrays, as it is published, with arguments to check it with and larger ones to time it with."""

    function: Callable[..., Any]
    small: Arguments
    large: Arguments
    by_hand: Callable[..., Any] | None = None
    """Its backward, written by hand: takes the arguments, then the gradients of the results."""

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        return compiled(self.function)

    @cached_property
    def weights(self) -> list[Any]:
        """Gradients of its results for the small arguments."""
        return weights_for(interpreted(self.function), self.small())

    @cached_property
    def slopes(self) -> list[np.ndarray]:
        """Its gradients by central differences."""
        return central_differences(interpreted(self.function), self.small(), self.weights)

    @cached_property
    def derived(self) -> Derived:
        return derive(self.function, *self.small())

    def arguments_of(self, gradient: Callable[..., Any]) -> list[Any]:
        """The small arguments and the weights, in the order of a gradient."""
        return gradient_arguments(gradient, self.function, self.small(), self.weights)


KERNELS: dict[str, Kernel] = {}


def kernel(small: Arguments, large: Arguments) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        KERNELS[function.__name__] = Kernel(function, small, large)
        return function

    return add


def by_hand(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function below is the backward of these kernels."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            KERNELS[name].by_hand = function
        return function

    return add


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    from numba import njit  # imported late: half a second, which tests in plain Python need not wait

    return njit(function, error_model="numpy")


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function where those that it calls are plain Python, which takes less time than to compile them."""
    namespace = {name: getattr(value, "py_func", value) for name, value in function.__globals__.items()}
    return FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers around 0."""
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def positive(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Random numbers from 0.5 to 1.5, times a scale."""
    return np.random.default_rng([seed, *shape]).uniform(0.5, 1.5, size=shape) * scale


def places(count: int, size: int) -> np.ndarray:
    """Random indices below `size`, some of them several times."""
    return np.random.default_rng([count, size]).integers(0, size, count)
