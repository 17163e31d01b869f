"""Initialisers of parameters. Each consists of an operator and its attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import DtypeError, OperatorError, ShapeError
from app.ops.creation import assign_value, fill_constant
from app.ops.definition import OpDef, apply
from app.ops.drawing import gaussian_random, uniform_random
from app.ops.dtype import is_float, name_of
from app.tensor import Tensor
from app.tensor.modes import modes

__all__ = [
    "Assign",
    "Constant",
    "Initializer",
    "KaimingUniform",
    "Normal",
    "Uniform",
    "XavierUniform",
]


def __dir__() -> list[str]:
    return __all__


First = tuple[OpDef, dict[str, Any]]
"""An operator, and its attributes other than shape and type."""


class Initializer:
    """The base class. Called with a Tensor, it fills the Tensor; called with a shape, it returns `of_shape(shape)`."""

    seed = 0
    """The seed of the random numbers; 0 takes the next stream of `opsmith.seed` or of the startup Program."""

    def of_shape(self, shape: Sequence[int]) -> First:
        """The operator that makes the initial value of a parameter of this shape, and its attributes."""
        raise NotImplementedError(f"{type(self).__name__} needs a method of_shape")

    def __call__(self, value: Any) -> Any:
        if not hasattr(value, "apply_operator"):
            return self.of_shape(tuple(value))
        if not isinstance(value, Tensor):
            raise OperatorError(
                f"{type(self).__name__}: a {type(value).__name__} has no values to replace; pass the "
                "initializer when the parameter is created: create_parameter(shape, attr=initializer)"
            )
        definition, attributes = first_value(self, value._array.shape, name_of(value._array.dtype))
        tracer = modes().tracer
        value.set_value(
            apply(definition, [], attributes) if tracer is None else tracer.apply(definition, [], attributes)
        )
        return None


def first_value(initializer: Callable[[Sequence[int]], First], shape: Sequence[int], dtype: str) -> First:
    """The operator that makes an initial value, and all of its attributes."""
    definition, settings = initializer(shape)
    if definition.random and not is_float(dtype):
        raise DtypeError(f"{type(initializer).__name__} draws floating numbers, which {dtype} cannot hold")
    seed = getattr(initializer, "seed", 0)
    named = {"seed": (seed, 0)} if definition.random and seed else {}
    return definition, {**definition.attributes, **settings, **named, "shape": tuple(shape), "dtype": dtype}


class Constant(Initializer):
    """Sets every element to one number."""

    def __init__(self, value: float = 0.0):
        self.value = value

    def of_shape(self, shape: Sequence[int]) -> First:
        return fill_constant, {"value": self.value}


class Uniform(Initializer):
    """Uniformly distributed random numbers between `low` and `high`."""

    def __init__(self, low: float = -1.0, high: float = 1.0):
        self.low, self.high = low, high

    def of_shape(self, shape: Sequence[int]) -> First:
        return uniform_random, {"min": self.low, "max": self.high}


class Normal(Initializer):
    """Normally distributed random numbers."""

    def __init__(self, mean: float = 0.0, std: float = 1.0):
        self.mean, self.std = mean, std

    def of_shape(self, shape: Sequence[int]) -> First:
        return gaussian_random, {"mean": self.mean, "std": self.std}


class XavierUniform(Initializer):
    """Glorot's initialisation: uniformly distributed numbers of the variance 2 / (inputs + outputs)."""

    def of_shape(self, shape: Sequence[int]) -> First:
        return _uniform(math.sqrt(2.0 / sum(_fans(shape))))


class KaimingUniform(Initializer):
    """He's initialisation, for ReLU: uniformly distributed numbers of the variance 2 / inputs."""

    def of_shape(self, shape: Sequence[int]) -> First:
        return _uniform(math.sqrt(2.0) / math.sqrt(_fans(shape)[0]))


def _uniform(std: float) -> First:
    """Uniformly distributed numbers around 0 of a standard deviation."""
    limit = math.sqrt(3.0) * std
    return uniform_random, {"min": -limit, "max": limit}


class Assign(Initializer):
    """Sets the parameter to given values."""

    def __init__(self, value: Any):
        self.value = np.asarray(value)

    def of_shape(self, shape: Sequence[int]) -> First:
        if self.value.shape != tuple(shape):
            own = list(self.value.shape)
            raise ShapeError(f"Assign has an array of shape {own}, the parameter has shape {list(shape)}")
        return assign_value, {"values": tuple(self.value.ravel().tolist())}


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """The numbers of inputs and outputs of a unit of a layer whose weight has this shape.

    A matrix is [inputs, outputs], and the weight of a convolution is [outputs, inputs, height, width], as in Paddle.
    """
    if len(shape) < 2:
        return (shape[0], shape[0]) if shape else (1, 1)
    if len(shape) == 2:
        return shape[0], shape[1]
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive
