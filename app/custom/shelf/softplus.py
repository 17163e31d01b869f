"""Softplus: Numba functions of single numbers, forward and backward.

Use this way for most operators: `if`, `math` and your own helper functions work, shapes need no declaration, inputs are
broadcast, and the functions become part of the network's loops. Write the backward if it is shorter or more exact than
the derived one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import opsmith


@njit
def sigmoid(x: float) -> float:
    return 1 / (1 + np.exp(-x)) if x > 0 else np.exp(x) / (1 + np.exp(x))


@opsmith.custom_op(elementwise=True, like="softplus", onnx="Softplus")
def softplus(x: float) -> float:
    """log(1 + exp(x)), written so that nothing overflows."""
    return (x if x > 0 else 0.0) + np.log1p(np.exp(-abs(x)))


@softplus.backward
def softplus_grad(x: float, dy: float) -> float:
    return dy * sigmoid(x)
