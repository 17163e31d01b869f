"""18. Native code.

This operator is right, and slow: its function is plain Python on arrays, which the engine calls for each batch.
Written for single numbers, with `elementwise=True`, it becomes part of the engine's own loops. `check` then
says "inlined".
"""

import numpy as np

import opsmith


@opsmith.custom_op
def soft_sign(x):
    return x / (1 + np.abs(x))


@soft_sign.backward
def soft_sign_grad(x, dy):
    return dy / (1 + np.abs(x)) ** 2
