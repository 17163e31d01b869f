"""19. Slow loops.

The loops of `running_maximum` run in Python. Put `@njit` of Numba below `@opsmith.custom_op` and below
`@running_maximum.backward`: the same source becomes native code. One line has to change, since Numba does not
know it.
"""

import numpy as np

import opsmith


@opsmith.custom_op
def running_maximum(x):
    y = np.empty_like(x)
    for i, row in enumerate(x.tolist()):
        best = -np.inf
        for j, number in enumerate(row):
            best = max(best, number)
            y[i, j] = best
    return y


@running_maximum.backward
def running_maximum_grad(x, y, dy):
    dx = np.zeros_like(x)
    for i in range(x.shape[0]):
        best = 0
        for j in range(x.shape[1]):
            if x[i, j] > x[i, best]:
                best = j
            dx[i, best] += dy[i, j]
    return dx
