"""How parameters get their first values: each initializer names the operator that makes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from app.errors import ShapeError
from app.ops.creation import assign_value, fill_constant, gaussian_random, uniform_random
from app.ops.definition import OpDef


class Initializer(Protocol):
    """Gives the operator, and its attributes, that makes the first value of a parameter of this shape."""

    def __call__(self, shape: Sequence[int]) -> tuple[OpDef, dict[str, Any]]: ...


class Constant:
    """The same number everywhere."""

    def __init__(self, value: float = 0.0):
        self.value = value

    def __call__(self, shape: Sequence[int]) -> tuple[OpDef, dict[str, Any]]:
        return fill_constant, {"value": self.value}


class Uniform:
    """Equally likely numbers between two bounds."""

    def __init__(self, low: float = -1.0, high: float = 1.0):
        self.low, self.high = low, high

    def __call__(self, shape: Sequence[int]) -> tuple[OpDef, dict[str, Any]]:
        return uniform_random, {"min": self.low, "max": self.high}


class Normal:
    """Normally distributed numbers."""

    def __init__(self, mean: float = 0.0, std: float = 1.0):
        self.mean, self.std = mean, std

    def __call__(self, shape: Sequence[int]) -> tuple[OpDef, dict[str, Any]]:
        return gaussian_random, {"mean": self.mean, "std": self.std}


class XavierUniform:
    """Uniform numbers whose spread keeps the size of values and gradients through a layer (Glorot and Bengio)."""

    def __call__(self, shape: Sequence[int]) -> tuple[OpDef, dict[str, Any]]:
        fan_in, fan_out = _fans(shape)
        return Uniform(-(limit := math.sqrt(6.0 / (fan_in + fan_out))), limit)(shape)


class XavierNormal:
    """Normal numbers with the spread of XavierUniform."""

    def __call__(self, shape: Sequence[int]) -> tuple[OpDef, dict[str, Any]]:
        fan_in, fan_out = _fans(shape)
        return Normal(0.0, math.sqrt(2.0 / (fan_in + fan_out)))(shape)


class KaimingUniform:
    """Uniform numbers whose spread makes up for the half that a ReLU removes (He and others)."""

    def __call__(self, shape: Sequence[int]) -> tuple[OpDef, dict[str, Any]]:
        limit = math.sqrt(6.0 / _fans(shape)[0])
        return Uniform(-limit, limit)(shape)


class KaimingNormal:
    """Normal numbers with the spread of KaimingUniform."""

    def __call__(self, shape: Sequence[int]) -> tuple[OpDef, dict[str, Any]]:
        return Normal(0.0, math.sqrt(2.0 / _fans(shape)[0]))(shape)


class Assign:
    """The numbers given."""

    def __init__(self, value: Any):
        self.value = np.asarray(value)

    def __call__(self, shape: Sequence[int]) -> tuple[OpDef, dict[str, Any]]:
        if self.value.shape != tuple(shape):
            found = list(self.value.shape)
            raise ShapeError(f"Assign has an array of shape {found}, the parameter has shape {list(shape)}")
        return assign_value, {"values": tuple(self.value.ravel().tolist())}


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """How many values go into, and come out of, a unit of a layer with a weight of this shape."""
    if len(shape) < 2:
        return (shape[0], shape[0]) if shape else (1, 1)
    receptive = math.prod(shape[2:])
    return shape[0] * receptive, shape[1] * receptive
