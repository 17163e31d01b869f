"""torch.nn.init: the framework's initialisers as functions that fill a Tensor. Weights are (outputs, inputs, ...)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import app
from app.compat.torch._random import default_generator
from app.nn import initializer as below


def _filled(tensor: Any, initializer: below.Initializer, generator: Any = None) -> Any:
    with (generator or default_generator).drawing(), app.no_grad():
        initializer(tensor)
    return tensor


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor of the standard deviation of weights that an activation function asks for."""
    return below.calculate_gain(nonlinearity, param if nonlinearity == "leaky_relu" else None)


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill a Tensor with uniformly distributed numbers from `a` to `b`."""
    return _filled(tensor, below.Uniform(a, b), generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fill a Tensor with normally distributed numbers."""
    return _filled(tensor, below.Normal(mean, std), generator)


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Fill a Tensor with normally distributed numbers between `a` and `b`."""
    return _filled(tensor, below.TruncatedNormal(mean, std, a, b), generator)


def constant_(tensor: Any, val: float) -> Any:
    """Fill a Tensor with a number."""
    return _filled(tensor, below.Constant(val))


def zeros_(tensor: Any) -> Any:
    """Fill a Tensor with zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Any) -> Any:
    """Fill a Tensor with ones."""
    return constant_(tensor, 1.0)


def eye_(tensor: Any) -> Any:
    """Make a Tensor the identity matrix."""
    return _filled(tensor, below.Assign(np.eye(*tensor.shape)))


def _fans(tensor: Any) -> tuple[int, int]:
    rest = math.prod(tensor.shape[2:])
    return tensor.shape[1] * rest, tensor.shape[0] * rest


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Glorot's initialisation with uniformly distributed numbers."""
    return _filled(tensor, below.XavierUniform(*_fans(tensor), gain), generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Glorot's initialisation with normally distributed numbers."""
    return _filled(tensor, below.XavierNormal(*_fans(tensor), gain), generator)


def _kaiming(kind: Any, tensor: Any, a: float, mode: str, nonlinearity: str) -> below.Initializer:
    fan = _fans(tensor)[mode == "fan_out"]
    made: below.Initializer = kind(fan, a if nonlinearity == "leaky_relu" else 0.0, nonlinearity, mode)
    return made


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """He's initialisation with uniformly distributed numbers."""
    return _filled(tensor, _kaiming(below.KaimingUniform, tensor, a, mode, nonlinearity), generator)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """He's initialisation with normally distributed numbers."""
    return _filled(tensor, _kaiming(below.KaimingNormal, tensor, a, mode, nonlinearity), generator)
