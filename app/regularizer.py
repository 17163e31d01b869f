"""Penalties on the size of parameters, as the gradient that they add."""

from __future__ import annotations

from typing import Any

from app.ops.rounding import sign

__all__ = ["L1Decay", "L2Decay"]


def __dir__() -> list[str]:
    return __all__


class L1Decay:
    """The sum of the sizes of all elements, times a number."""

    def __init__(self, coeff: float = 0.0):
        self.coeff = float(coeff)

    def penalty_gradient(self, parameter: Any) -> Any:
        """What the penalty adds to the gradient of a parameter."""
        return sign(parameter) * self.coeff

    def __repr__(self) -> str:
        return f"L1Decay, coeff={self.coeff:f}"


class L2Decay:
    """Half of the sum of the squares of all elements, times a number."""

    def __init__(self, coeff: float = 0.0):
        self.coeff = float(coeff)

    def penalty_gradient(self, parameter: Any) -> Any:
        """What the penalty adds to the gradient of a parameter."""
        return parameter * self.coeff

    def __repr__(self) -> str:
        return f"L2Decay, coeff={self.coeff:f}"
