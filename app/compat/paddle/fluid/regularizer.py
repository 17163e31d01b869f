"""paddle.fluid.regularizer"""

from typing import Any

from app import regularizer as _below
from app.compat.missing import missing


def L1Decay(regularization_coeff: float = 0.0) -> Any:
    return _below.L1Decay(regularization_coeff)


def L2Decay(regularization_coeff: float = 0.0) -> Any:
    return _below.L2Decay(regularization_coeff)


L1DecayRegularizer, L2DecayRegularizer = L1Decay, L2Decay

__all__ = ["L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer"]

__getattr__ = missing(__name__)
