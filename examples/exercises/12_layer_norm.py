"""12. Layer normalisation.

With u = (x - mean) / deviation of each row, y = u * w. As for softmax, the numbers of a row depend on each
other: with g = dy * w, dx = (g - mean(g) - u * mean(g * u)) / deviation. And w has a gradient, too.
"""

import numpy as np

import opsmith


def normalised(x):
    deviation = np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return (x - x.mean(axis=1, keepdims=True)) / deviation, deviation


@opsmith.custom_op
def layer_norm(x, w):
    u, _ = normalised(x)
    return u * w


@layer_norm.backward
def layer_norm_grad(x, w, dy):
    u, deviation = normalised(x)
    return dy * w / deviation, np.zeros_like(u.sum(axis=0))
