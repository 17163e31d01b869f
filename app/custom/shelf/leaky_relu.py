"""Leaky ReLU: Numba functions of whole arrays under `custom_op`, with a setting.

The way for those who think in arrays: what would be NumPy is compiled, into the loop of the network where each
element is computed by itself. A parameter with a default, `slope` here, is a setting; backward may ask for it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import app


@app.custom_op(like="leaky_relu(negative_slope=0.1)")
@njit(cache=True)
def leaky_relu(x: np.ndarray, slope: float = 0.1) -> np.ndarray:
    """The value where it is above zero, else a part of it."""
    return np.where(x > 0, x, x * slope)


@leaky_relu.backward
@njit(cache=True)
def leaky_relu_grad(x: np.ndarray, dy: np.ndarray, slope: float) -> np.ndarray:
    return np.where(x > 0, dy, dy * slope)
