"""The four NumPy functions of it alone, without a framework"""

import numpy as np

x = np.random.default_rng(0).standard_normal((1, 16), np.float32)
gradient = np.ones((1, 16), np.float32)


def call():
    y = np.tanh(x)
    np.multiply(gradient, np.subtract(1, np.square(y)))
