"""Products and distances of rows, and attention."""

from __future__ import annotations

import math

import numpy as np
from derivative.kernels.registry import by_hand, kernel, normal, positive


@kernel(
    lambda: (normal(4, 3), normal(3, 5), normal(4, 5)),
    lambda: (normal(256, 64), normal(64, 64), normal(256, 64, seed=1)),
)
def bilinear(x, w, z):
    y = np.empty(x.shape[0], x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] @ w @ z[i]
    return y


@by_hand("bilinear")
def bilinear_backward(x, w, z, dy):
    dx = np.empty_like(x)
    dw = np.zeros_like(w)
    dz = np.empty_like(z)
    for i in range(x.shape[0]):
        dx[i] = dy[i] * (w @ z[i])
        dz[i] = dy[i] * (x[i] @ w)
        for j in range(w.shape[0]):
            g = dy[i] * x[i, j]
            for k in range(w.shape[1]):
                dw[j, k] += g * z[i, k]
    return dx, dw, dz


@kernel(lambda: (normal(4, 3), normal(5, 3)), lambda: (normal(128, 32), normal(128, 32, seed=1)))
def pairwise_distances(x, z):
    y = np.empty((x.shape[0], z.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(z.shape[0]):
            total = 0.0
            for k in range(x.shape[1]):
                difference = x[i, k] - z[j, k]
                total += difference * difference
            y[i, j] = math.sqrt(total)
    return y


@by_hand("pairwise_distances")
def pairwise_distances_backward(x, z, dy):
    dx = np.zeros_like(x)
    dz = np.zeros_like(z)
    for i in range(x.shape[0]):
        for j in range(z.shape[0]):
            total = 0.0
            for k in range(x.shape[1]):
                difference = x[i, k] - z[j, k]
                total += difference * difference
            g = dy[i, j] / math.sqrt(total)
            for k in range(x.shape[1]):
                part = g * (x[i, k] - z[j, k])
                dx[i, k] += part
                dz[j, k] -= part
    return dx, dz


@kernel(
    lambda: (normal(4, 3), normal(5, 3), positive(1)),
    lambda: (normal(128, 32), normal(128, 32, seed=1), positive(1, scale=0.1)),
)
def rbf(x, z, gamma):
    y = np.empty((x.shape[0], z.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(z.shape[0]):
            difference = x[i] - z[j]
            y[i, j] = np.exp(-gamma[0] * np.sum(difference * difference))
    return y


@by_hand("rbf")
def rbf_backward(x, z, gamma, dy):
    dx = np.zeros_like(x)
    dz = np.zeros_like(z)
    dgamma = np.zeros_like(gamma)
    for i in range(x.shape[0]):
        for j in range(z.shape[0]):
            total = 0.0
            for k in range(x.shape[1]):
                total += (x[i, k] - z[j, k]) ** 2
            g = dy[i, j] * math.exp(-gamma[0] * total)
            dgamma[0] -= g * total
            g *= -2 * gamma[0]
            for k in range(x.shape[1]):
                part = g * (x[i, k] - z[j, k])
                dx[i, k] += part
                dz[j, k] -= part
    return dx, dz, dgamma


@kernel(lambda: (normal(6, 3), normal(6, 3, seed=1)), lambda: (normal(1024, 64), normal(1024, 64, seed=1)))
def cosine(x, z):
    y = np.empty(x.shape[0], x.dtype)
    for i, (a, b) in enumerate(zip(x, z)):  # noqa: B905  # Numba has no `strict`
        y[i] = np.dot(a, b) / (np.sqrt(np.dot(a, a)) * np.sqrt(np.dot(b, b)) + 1e-8)
    return y


@kernel(lambda: (normal(5, 4), normal(3, 4), normal(3)), lambda: (normal(256, 64), normal(64, 64), normal(64)))
def linear_relu(x, w, b):
    return np.maximum(x @ w.T + b, 0.0)


@by_hand("linear_relu")
def linear_relu_backward(x, w, b, dy):
    active = x @ w.T
    db = np.zeros_like(b)
    for i in range(active.shape[0]):
        for j in range(active.shape[1]):
            active[i, j] = dy[i, j] if active[i, j] + b[j] > 0 else 0.0
            db[j] += active[i, j]
    return active @ w, active.T @ x, db


def _small():
    return normal(4, 3), normal(5, 3), normal(5, 2)


def _large():
    return normal(128, 64), normal(128, 64, seed=1), normal(128, 64, seed=2)


@kernel(_small, _large)
def attention(q, k, v):
    y = np.zeros((q.shape[0], v.shape[1]), q.dtype)
    scale = 1 / math.sqrt(q.shape[1])
    weight = np.empty(k.shape[0], q.dtype)
    for i in range(q.shape[0]):
        largest = -np.inf
        for j in range(k.shape[0]):
            score = 0.0
            for d in range(q.shape[1]):
                score += q[i, d] * k[j, d]
            weight[j] = score * scale
            largest = max(largest, weight[j])
        total = 0.0
        for j in range(k.shape[0]):
            weight[j] = math.exp(weight[j] - largest)
            total += weight[j]
        for j in range(k.shape[0]):
            for d in range(v.shape[1]):
                y[i, d] += weight[j] / total * v[j, d]
    return y


@kernel(_small, _large)
def attention_rows(q, k, v):
    y = np.zeros((q.shape[0], v.shape[1]), q.dtype)
    for i in range(len(q)):
        score = k @ q[i] / np.sqrt(q.shape[1])
        weight = np.exp(score - score.max())
        weight /= weight.sum()
        for j in range(len(k)):
            y[i] += weight[j] * v[j]
    return y


@by_hand("attention", "attention_rows")
def attention_backward(q, k, v, dy):
    dq = np.zeros_like(q)
    dk = np.zeros_like(k)
    dv = np.zeros_like(v)
    scale = 1 / math.sqrt(q.shape[1])
    weight = np.empty(k.shape[0], q.dtype)
    dweight = np.empty(k.shape[0], q.dtype)
    for i in range(q.shape[0]):
        largest = -np.inf
        for j in range(k.shape[0]):
            score = 0.0
            for d in range(q.shape[1]):
                score += q[i, d] * k[j, d]
            weight[j] = score * scale
            largest = max(largest, weight[j])
        total = 0.0
        for j in range(k.shape[0]):
            weight[j] = math.exp(weight[j] - largest)
            total += weight[j]
        dot = 0.0
        for j in range(k.shape[0]):
            weight[j] /= total
            product = 0.0
            for d in range(v.shape[1]):
                product += dy[i, d] * v[j, d]
                dv[j, d] += weight[j] * dy[i, d]
            dweight[j] = product
            dot += weight[j] * product
        for j in range(k.shape[0]):
            dscore = weight[j] * (dweight[j] - dot) * scale
            for d in range(q.shape[1]):
                dq[i, d] += dscore * k[j, d]
                dk[j, d] += dscore * q[i, d]
    return dq, dk, dv
