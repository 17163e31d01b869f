"""torch.nn.init"""

from __future__ import annotations

import math
from typing import Any

import app
from app.compat.missing import missing

_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much an activation wants its weights to be larger."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    return _GAINS.get(nonlinearity, 1.0)


def _unrecorded(name: str) -> Any:
    def fill(tensor: Any, *settings: float, **named: Any) -> Any:
        named.pop("generator", None)
        with app.no_grad():
            return getattr(tensor, name)(*settings, **named)

    fill.__name__, fill.__doc__ = name, f"Fill a Tensor by its method `{name}`, outside the graph."
    return fill


_uniform, _normal = _unrecorded("uniform_"), _unrecorded("normal_")
constant_, zeros_ = _unrecorded("fill_"), _unrecorded("zero_")


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Random numbers, each equally likely between `a` and `b`."""
    return _uniform(tensor, a, b)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Random numbers of a normal distribution."""
    return _normal(tensor, mean, std)


def ones_(tensor: Any) -> Any:
    """Ones."""
    return constant_(tensor, 1.0)


def eye_(tensor: Any) -> Any:
    """The unit matrix."""
    with app.no_grad():
        return tensor.copy_(app.eye(*tensor.shape))


def _fans(tensor: Any) -> tuple[int, int]:
    """How many inputs and outputs a weight of shape (outputs, inputs, ...) has."""
    rest = math.prod(tensor.shape[2:])
    return tensor.shape[1] * rest, tensor.shape[0] * rest


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Glorot's uniform numbers."""
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Glorot's normal numbers."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))))


def _kaiming(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor)[("fan_in", "fan_out").index(mode)])


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """He's uniform numbers."""
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """He's normal numbers."""
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity))


__all__ = [
    "calculate_gain",
    "constant_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

__getattr__ = missing(__name__)
