"""13. A recursion.

Each result of a moving average depends on the one before it: y[t] = keep * y[t - 1] + (1 - keep) * x[t].
Backward goes through a row from its end to its beginning, and carries the gradient of y[t - 1] along. `keep`
is a setting.
"""

import numpy as np
from numba import njit

import opsmith


@opsmith.custom_op
@njit
def average(x, keep=0.75):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        last = 0.0
        for t in range(x.shape[1]):
            last = keep * last + (1 - keep) * x[i, t]
            y[i, t] = last
    return y


@average.backward
@njit
def average_grad(x, dy, keep):
    dx = np.empty_like(x)
    for i in range(x.shape[0]):
        for t in range(x.shape[1]):
            dx[i, t] = (1 - keep) * dy[i, t]
    return dx
