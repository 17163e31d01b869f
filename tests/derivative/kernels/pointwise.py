"""Activations that look at more than one element, or have parameters."""

from __future__ import annotations

import math

import numpy as np
from derivative.kernels.registry import by_hand, kernel, normal, positive
from numba import njit


@kernel(lambda: (normal(4, 8),), lambda: (normal(512, 64),))
def topk(x, k=3):
    """The k largest of each row; the others are zero."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        rest = x[i].copy()
        for _ in range(k):
            j = np.argmax(rest)
            y[i, j] = x[i, j]
            rest[j] = -np.inf
    return y


@kernel(lambda: (normal(5, 7),), lambda: (normal(512, 256),))
def median3(x):
    y = np.empty((x.shape[0], x.shape[1] - 2), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - 2):
            a, b, c = x[i, j], x[i, j + 1], x[i, j + 2]
            y[i, j] = max(min(a, b), min(max(a, b), c))
    return y


@by_hand("median3")
def median3_backward(x, dy):
    dx = np.zeros_like(x)
    for i in range(dy.shape[0]):
        for j in range(dy.shape[1]):
            a, b, c = x[i, j], x[i, j + 1], x[i, j + 2]
            if (a <= b) == (b <= c):
                dx[i, j + 1] += dy[i, j]
            elif (b <= a) == (a <= c):
                dx[i, j] += dy[i, j]
            else:
                dx[i, j + 2] += dy[i, j]
    return dx


@kernel(lambda: (normal(4, 6), positive(6, scale=0.4)), lambda: (normal(512, 256), positive(256, scale=0.4)))
def soft_threshold(x, threshold):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > threshold[j]:
                y[i, j] = x[i, j] - threshold[j]
            elif x[i, j] < -threshold[j]:
                y[i, j] = x[i, j] + threshold[j]
    return y


@by_hand("soft_threshold")
def soft_threshold_backward(x, threshold, dy):
    dx = np.zeros_like(x)
    dthreshold = np.zeros_like(threshold)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > threshold[j]:
                dx[i, j] = dy[i, j]
                dthreshold[j] -= dy[i, j]
            elif x[i, j] < -threshold[j]:
                dx[i, j] = dy[i, j]
                dthreshold[j] += dy[i, j]
    return dx, dthreshold


@kernel(lambda: (normal(4, 3, 5), normal(3)), lambda: (normal(64, 16, 128), normal(16)))
def prelu(x, slope):
    y = np.empty_like(x)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(x.shape[2]):
                v = x[b, c, i]
                y[b, c, i] = v if v > 0 else slope[c] * v
    return y


@by_hand("prelu")
def prelu_backward(x, slope, dy):
    dx = np.empty_like(x)
    dslope = np.zeros_like(slope)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            total = 0.0
            for i in range(x.shape[2]):
                v = x[b, c, i]
                if v > 0:
                    dx[b, c, i] = dy[b, c, i]
                else:
                    dx[b, c, i] = slope[c] * dy[b, c, i]
                    total += dy[b, c, i] * v
            dslope[c] += total
    return dx, dslope


@njit
def sigmoid(v):
    if v >= 0:
        return 1 / (1 + math.exp(-v))
    e = math.exp(v)
    return e / (1 + e)


@kernel(lambda: (normal(4, 8),), lambda: (normal(512, 256),))
def glu(x):
    half = x.shape[1] // 2
    y = np.empty((x.shape[0], half), x.dtype)
    for i in range(x.shape[0]):
        for j in range(half):
            y[i, j] = x[i, j] * sigmoid(x[i, half + j])
    return y


@kernel(lambda: (normal(4, 8),), lambda: (normal(512, 256),))
def glu_whole(x):
    half = x.shape[1] // 2
    return x[:, :half] / (1 + np.exp(-x[:, half:]))


@by_hand("glu", "glu_whole")
def glu_backward(x, dy):
    dx = np.empty_like(x)
    half = x.shape[1] // 2
    for i in range(x.shape[0]):
        for j in range(half):
            s = 1 / (1 + math.exp(-x[i, half + j]))
            dx[i, j] = dy[i, j] * s
            dx[i, half + j] = dy[i, j] * x[i, j] * s * (1 - s)
    return dx


@kernel(
    lambda: (normal(4, 5), normal(3, 4, 5), normal(3, 4)), lambda: (normal(128, 64), normal(4, 64, 64), normal(4, 64))
)
def maxout(x, w, b):
    pieces, outputs, inputs = w.shape
    y = np.empty((x.shape[0], outputs), x.dtype)
    for i in range(x.shape[0]):
        for o in range(outputs):
            best = -np.inf
            for p in range(pieces):
                z = b[p, o]
                for j in range(inputs):
                    z += w[p, o, j] * x[i, j]
                best = max(best, z)
            y[i, o] = best
    return y


@by_hand("maxout")
def maxout_backward(x, w, b, dy):
    pieces, outputs, inputs = w.shape
    dx = np.zeros_like(x)
    dw = np.zeros_like(w)
    db = np.zeros_like(b)
    for i in range(x.shape[0]):
        for o in range(outputs):
            best = -np.inf
            at = 0
            for p in range(pieces):
                z = b[p, o]
                for j in range(inputs):
                    z += w[p, o, j] * x[i, j]
                if z > best:
                    best = z
                    at = p
            g = dy[i, o]
            db[at, o] += g
            for j in range(inputs):
                dx[i, j] += g * w[at, o, j]
                dw[at, o, j] += g * x[i, j]
    return dx, dw, db
