"""6. A gradient that differs on purpose.

The derivative of rounding is 0 almost everywhere, so nothing would be learned through it. A straight-through
estimator passes the gradient on unchanged where |x| <= 1, and 0 elsewhere. Write it, and declare that it differs
from the derivative on purpose: `@rounded.backward(surrogate=True)`.
"""

import numpy as np

import opsmith


@opsmith.custom_op
def rounded(x):
    return np.floor(4 * x + 0.5) / 4


@rounded.backward
def rounded_grad(x, dy):
    return np.zeros_like(dy)
