"""18. Native code.

This operator is right, and slow: its function is a loop in plain Python, which the engine calls for each batch.
Written for single numbers, with `elementwise=True`, or for whole arrays in NumPy, it becomes part of the
engine's own loops. `check` then says "inlined".
"""

import numpy as np

import opsmith


@opsmith.custom_op
def soft_sign(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = x[i] / (1 + np.abs(x[i]))
    return y


@soft_sign.backward
def soft_sign_grad(x, dy):
    return dy / (1 + np.abs(x)) ** 2
