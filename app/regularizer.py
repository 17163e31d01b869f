"""Regularisation: penalties on parameters, added to their gradients."""

from __future__ import annotations

from typing import Any

from app.ops.rounding import sign

__all__ = ["L1Decay", "L2Decay"]


def __dir__() -> list[str]:
    return __all__


class L1Decay:
    """L1 regularisation: the sum of absolute values times a coefficient."""

    def __init__(self, coeff: float = 0.0):
        self.coeff = float(coeff)

    def penalty_gradient(self, parameter: Any) -> Any:
        """The term that is added to the gradient of a parameter."""
        return sign(parameter) * self.coeff

    def __repr__(self) -> str:
        return f"L1Decay, coeff={self.coeff:f}"


class L2Decay:
    """L2 regularisation: half the sum of squares times a coefficient."""

    def __init__(self, coeff: float = 0.0):
        self.coeff = float(coeff)

    def penalty_gradient(self, parameter: Any) -> Any:
        """The term that is added to the gradient of a parameter."""
        return parameter * self.coeff

    def __repr__(self) -> str:
        return f"L2Decay, coeff={self.coeff:f}"
