"""2. A missing term.

y = x * tanh(x) is a product, and the derivative of a product has two terms. Complete it.
"""

import numpy as np

import opsmith


@opsmith.custom_op
def wave(x):
    return x * np.tanh(x)


@wave.backward
def wave_grad(x, dy):
    return dy * np.tanh(x)
