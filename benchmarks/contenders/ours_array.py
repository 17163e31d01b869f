"""**This project**, custom ReLU as a Numba function on arrays"""

import numpy as np
from numba import njit

from app import custom_op
from benchmarks import ours


@custom_op
@njit(cache=True)
def relu(x):
    return np.maximum(x, np.float32(0))


@relu.backward
@njit(cache=True)
def relu_backward(y, dy):
    return np.where(y > 0, dy, np.float32(0))


def train(data, work):
    return ours.train(data, work, f"{__file__}:relu")
