"""An exponential moving average along each row: a recursion with a setting. Its gradient is derived from its source.

Use this way for filters and recurrences, whose gradient runs backwards through the row. Parameters with a default, such
as `alpha`, are settings: `custom.ema(alpha=0.5)`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import opsmith


@opsmith.custom_op(row_by_row=True)
@njit
def ema(x: np.ndarray, alpha: float = 0.3) -> np.ndarray:
    """alpha * x[t] + (1 - alpha) * y[t - 1], beginning with the first element."""
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        state = x[i, 0]
        for t in range(x.shape[1]):
            state = alpha * x[i, t] + (1 - alpha) * state
            y[i, t] = state
    return y
