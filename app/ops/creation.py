"""Operators that make values: constants, values like another one, and random initial values."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.definition import operator, same_as_input
from app.ops.form import Constant, Elementwise
from app.ops.random import generator
from app.ops.spec import Spec


def _declared(*, shape: tuple[int, ...], dtype: str, **attributes: Any) -> Spec:
    return Spec(tuple(shape), dtype)


@operator(_declared, form=Constant(lambda attributes: attributes["value"]))
def fill_constant(*, shape: Any, value: float, dtype: str = "float32") -> Any:
    """A new array with the same number everywhere."""
    return np.full(shape, value, dtype)


@operator(lambda *, values, dtype, shape: Spec(shape, dtype))
def assign_value(*, values: Any, dtype: str, shape: Any) -> Any:
    """A new array with the values listed in row order."""
    return np.array(values, dtype).reshape(shape)


@operator(
    lambda x, *, value, dtype=None: Spec(x.shape, dtype or x.dtype),
    form=Constant(lambda attributes: attributes["value"]),
)
def full_like(x: Any, *, value: float, dtype: str | None = None) -> Any:
    """A new array with the shape of another and the same number everywhere."""
    return np.full_like(x, value, dtype)


def zeros_like(x: Any, dtype: str | None = None) -> Any:
    """Zeros with the shape of another value."""
    return full_like(x, value=0, dtype=dtype)


def ones_like(x: Any, dtype: str | None = None) -> Any:
    """Ones with the shape of another value."""
    return full_like(x, value=1, dtype=dtype)


@operator(same_as_input, form=Elementwise(lambda x: x, settings=False))
def assign(x: Any) -> Any:
    """A copy."""
    return np.copy(x)


@assign.gradient
def _(dout: Any) -> Any:
    return dout


@operator(_declared)
def uniform_random(*, shape: Any, dtype: str = "float32", min: float = -1.0, max: float = 1.0, seed: Any = None) -> Any:
    """Random numbers, each equally likely between `min` and `max`."""
    return generator(seed).uniform(min, max, shape).astype(dtype)


@operator(_declared)
def gaussian_random(
    *, shape: Any, dtype: str = "float32", mean: float = 0.0, std: float = 1.0, seed: Any = None
) -> Any:
    """Random numbers of the normal distribution."""
    return generator(seed).normal(mean, std, shape).astype(dtype)


@operator(_declared)
def integer_random(*, shape: Any, dtype: str = "int64", low: int = 0, high: int = 2, seed: Any = None) -> Any:
    """Random whole numbers from `low` up to, and without, `high`."""
    return generator(seed).integers(low, high, shape, dtype)
