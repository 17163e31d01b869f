"""Leaky ReLU: Numba functions of whole arrays under `custom_op`, with a setting.

Use this way if you think in arrays: NumPy code is compiled, and becomes part of the network's loops if it is
elementwise. A parameter with a default, `slope` here, is a setting; backward may name it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import opsmith


@opsmith.custom_op(like="leaky_relu(negative_slope=0.1)")
@njit
def leaky_relu(x: np.ndarray, slope: float = 0.1) -> np.ndarray:
    """x where it is positive, else x * slope."""
    return np.where(x > 0, x, x * slope)


@leaky_relu.backward
@njit
def leaky_relu_grad(x: np.ndarray, dy: np.ndarray, slope: float) -> np.ndarray:
    return np.where(x > 0, dy, dy * slope)
