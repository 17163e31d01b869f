"""Softplus: Numba functions of single numbers, forward and backward.

The way for most operators: `if`, `math` and helpers of your own work as in any Python, nothing has to be said of
shapes, inputs are broadcast, and the network has it in its loops. Write the backward where it is shorter, or
more exact, than the one that would be derived.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import app


@njit
def sigmoid(x: float) -> float:
    return 1 / (1 + np.exp(-x)) if x > 0 else 1 - 1 / (1 + np.exp(x))


@app.custom_op(elementwise=True, like="softplus", onnx="Softplus")
def softplus(x: float) -> float:
    """log(1 + exp(x)), written such that nothing overflows."""
    return (x if x > 0 else 0.0) + np.log1p(np.exp(-abs(x)))


@softplus.backward
def softplus_grad(x: float, dy: float) -> float:
    return dy * sigmoid(x)
