"""Softmax of each row: loops over arrays, compiled by Numba. Its gradient is derived from its source.

Use this way for an operator that needs a whole row to compute an element. `opsmith derive custom.softmax` prints the
gradient. `row_by_row` lets each thread call both functions with its own rows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

import opsmith


@opsmith.custom_op(row_by_row=True, like="softmax")
@njit
def softmax(x: np.ndarray) -> np.ndarray:
    """exp(x) over its sum along each row."""
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        largest = x[i, 0]
        for j in range(1, x.shape[1]):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = math.exp(x[i, j] - largest)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
    return y
