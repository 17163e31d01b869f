"""Operators that leave in tests."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

import app


@app.custom_op(elementwise=True)
def root(x):
    return math.sqrt(x) if x > 0 else 0.0


@app.custom_op(elementwise=True)
def halvings(x, limit=1.0):
    n = 0
    while x > limit:
        x = x / 2
        n += 1
    return x * 1.5


@app.custom_op(elementwise=True, outputs=["sine", "rest"])
def parts(x, y, scale=2.0):
    s = math.sin(x * scale)
    return s, y * s - x


@app.custom_op(elementwise=True)
def squashed(x):
    return 1 / (1 + math.exp(-x))


@squashed.backward
def squashed_grad(y, dy):
    return dy * y * (1 - y)


@app.custom_op(elementwise=True)
def stepped(x):
    return 1.0 if x > 0 else 0.0


@stepped.backward(surrogate=True)
def stepped_grad(x, dy):
    return dy if abs(x) < 1 else 0.0


@app.custom_op
@njit
def picked(x, index):
    y = np.empty((len(index), x.shape[1]), x.dtype)
    for i in range(len(index)):
        for j in range(x.shape[1]):
            y[i, j] = x[index[i], j] * 2
    return y
