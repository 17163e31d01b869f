"""Softmax in three styles, and what belongs to it."""

from __future__ import annotations

import math

import numpy as np
from derivative.kernels.registry import by_hand, kernel, normal, places


@kernel(lambda: (normal(4, 6),), lambda: (normal(512, 256),))
def softmax(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        largest = x[i, 0]
        for j in range(1, x.shape[1]):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = math.exp(x[i, j] - largest)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
    return y


@kernel(lambda: (normal(4, 6),), lambda: (normal(512, 256),))
def softmax_rows(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        e = np.exp(x[i] - x[i].max())
        y[i] = e / e.sum()
    return y


@kernel(lambda: (normal(4, 6),), lambda: (normal(512, 256),))
def softmax_whole(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e, axis=1)[:, None]


@by_hand("softmax", "softmax_rows", "softmax_whole")
def softmax_backward(x, dy):
    n, d = x.shape
    dx = np.empty_like(x)
    for i in range(n):
        largest = x[i, 0]
        for j in range(1, d):
            largest = max(largest, x[i, j])
        total = 0.0
        dot = 0.0
        for j in range(d):
            e = math.exp(x[i, j] - largest)
            dx[i, j] = e
            total += e
            dot += e * dy[i, j]
        dot /= total
        for j in range(d):
            dx[i, j] = dx[i, j] / total * (dy[i, j] - dot)
    return dx


@kernel(lambda: (normal(4, 6),), lambda: (normal(512, 256),))
def log_softmax(x):
    n, d = x.shape
    y = np.empty((n, d), x.dtype)
    for i in range(n):
        largest = -np.inf
        for j in range(d):
            if x[i, j] > largest:
                largest = x[i, j]
        total = 0.0
        for j in range(d):
            total += np.exp(x[i, j] - largest)
        shift = largest + np.log(total)
        for j in range(d):
            y[i, j] = x[i, j] - shift
    return y


@by_hand("log_softmax")
def log_softmax_backward(x, dy):
    n, d = x.shape
    dx = np.empty_like(x)
    for i in range(n):
        largest = x[i, 0]
        for j in range(1, d):
            largest = max(largest, x[i, j])
        total = 0.0
        dtotal = 0.0
        for j in range(d):
            e = np.exp(x[i, j] - largest)
            dx[i, j] = e
            total += e
            dtotal += dy[i, j]
        dtotal /= total
        for j in range(d):
            dx[i, j] = dy[i, j] - dx[i, j] * dtotal
    return dx


@kernel(lambda: (normal(4, 6),), lambda: (normal(512, 256),))
def logsumexp(x):
    y = np.empty(x.shape[0], x.dtype)
    for i, row in enumerate(x):
        largest = row.max()
        y[i] = largest + np.log(np.exp(row - largest).sum())
    return y


@by_hand("logsumexp")
def logsumexp_backward(x, dy):
    n, d = x.shape
    dx = np.empty_like(x)
    for i in range(n):
        largest = x[i, 0]
        for j in range(1, d):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(d):
            dx[i, j] = np.exp(x[i, j] - largest)
            total += dx[i, j]
        scale = dy[i] / total
        for j in range(d):
            dx[i, j] *= scale
    return dx


@kernel(lambda: (normal(4, 5), places(4, 5)), lambda: (normal(512, 64), places(512, 64)))
def cross_entropy(x, label):
    loss = np.zeros(1)
    for i in range(x.shape[0]):
        largest = np.max(x[i])
        total = 0.0
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - largest)
        loss[0] += largest + math.log(total) - x[i, label[i]]
    loss /= x.shape[0]
    return loss


@by_hand("cross_entropy")
def cross_entropy_backward(x, label, dloss):
    n, d = x.shape
    dx = np.empty_like(x)
    scale = dloss[0] / n
    for i in range(n):
        largest = x[i, 0]
        for j in range(1, d):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(d):
            dx[i, j] = math.exp(x[i, j] - largest)
            total += dx[i, j]
        for j in range(d):
            dx[i, j] *= scale / total
        dx[i, label[i]] -= scale
    return dx
