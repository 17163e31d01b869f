"""Fixed points, solvers and recurrent networks."""

from __future__ import annotations

import math

import numpy as np
from derivative.kernels.registry import by_hand, kernel, normal, positive
from numba import njit


@kernel(lambda: (positive(3, 4),), lambda: (positive(64, 64),))
def sinkhorn(cost, rounds=5):
    """Rows and columns are scaled in turn, in place."""
    k = np.exp(-cost)
    for _ in range(rounds):
        for i in range(k.shape[0]):
            k[i] /= k[i].sum()
        for j in range(k.shape[1]):
            k[:, j] /= k[:, j].sum()
    return k


@kernel(lambda: (positive(3, 4),), lambda: (positive(64, 64),))
def sinkhorn_vectors(cost, rounds=5):
    k = np.exp(-cost)
    rows = np.ones(k.shape[0], k.dtype)
    columns = np.ones(k.shape[1], k.dtype)
    u = rows.copy()
    v = columns.copy()
    for _ in range(rounds):
        u = rows / (k @ v)
        v = columns / (k.T @ u)
    return u[:, None] * k * v


@kernel(lambda: (positive(4, 4), positive(4)), lambda: (positive(64, 64), positive(64)))
def power_iteration(a, start, rounds=6):
    v = start / np.sqrt(np.sum(start * start))
    for _ in range(rounds):
        v = a @ v
        v = v / np.sqrt(np.sum(v * v))
    return v


@njit
def pendulum(state, k):
    change = np.empty_like(state)
    change[0] = state[1]
    change[1] = -k[0] * np.sin(state[0]) - k[1] * state[1]
    return change


@kernel(lambda: (normal(2), positive(2)), lambda: (normal(2), positive(2)))
def rk4(start, k, end=0.55, step=0.1):
    """A pendulum; the last step ends where the time does."""
    y = start.copy()
    t = 0.0
    while t < end:
        h = min(step, end - t)
        k1 = pendulum(y, k)
        k2 = pendulum(y + h / 2 * k1, k)
        k3 = pendulum(y + h / 2 * k2, k)
        k4 = pendulum(y + h * k3, k)
        for i in range(len(y)):
            y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i])
        t += h
    return y


@kernel(lambda: (positive(3, 4),), lambda: (positive(512, 256),))
def newton_sqrt(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            root = x[i, j]
            for _ in range(30):
                following = 0.5 * (root + x[i, j] / root)
                if abs(following - root) < 1e-3:
                    break
                root = following
            y[i, j] = root
    return y


def _small():
    return normal(4, 3), normal(3, 3), normal(3, 3, seed=1), normal(3)


def _large():
    return normal(64, 64), normal(64, 64, seed=1), normal(64, 64, seed=2) * 0.1, normal(64)


@kernel(_small, _large)
def rnn(x, u, w, b):
    steps, size = x.shape[0], w.shape[0]
    h = np.zeros((steps + 1, size), x.dtype)
    for t in range(steps):
        for i in range(size):
            total = b[i]
            for j in range(x.shape[1]):
                total += u[i, j] * x[t, j]
            for j in range(size):
                total += w[i, j] * h[t, j]
            h[t + 1, i] = math.tanh(total)
    return h


@by_hand("rnn")
def rnn_backward(x, u, w, b, dy):
    steps, size = x.shape[0], w.shape[0]
    h = np.zeros((steps + 1, size), x.dtype)
    for t in range(steps):
        for i in range(size):
            total = b[i]
            for j in range(x.shape[1]):
                total += u[i, j] * x[t, j]
            for j in range(size):
                total += w[i, j] * h[t, j]
            h[t + 1, i] = math.tanh(total)
    dh = dy.copy()
    dx = np.zeros_like(x)
    du = np.zeros_like(u)
    dw = np.zeros_like(w)
    db = np.zeros_like(b)
    for t in range(steps - 1, -1, -1):
        for i in range(size):
            g = dh[t + 1, i] * (1 - h[t + 1, i] ** 2)
            db[i] += g
            for j in range(x.shape[1]):
                du[i, j] += g * x[t, j]
                dx[t, j] += g * u[i, j]
            for j in range(size):
                dw[i, j] += g * h[t, j]
                dh[t, j] += g * w[i, j]
    return dx, du, dw, db


@kernel(_small, _large)
def rnn_rows(x, u, w, b):
    h = np.zeros(w.shape[0], x.dtype)
    y = np.empty((x.shape[0], w.shape[0]), x.dtype)
    for t in range(x.shape[0]):
        h = np.tanh(u @ x[t] + w @ h + b)
        y[t] = h
    return y


@by_hand("rnn_rows")
def rnn_rows_backward(x, u, w, b, dy):
    steps, size = x.shape[0], w.shape[0]
    h = np.zeros((steps + 1, size), x.dtype)
    for t in range(steps):
        h[t + 1] = np.tanh(u @ x[t] + w @ h[t] + b)
    dz = np.empty((steps, size), x.dtype)
    dh = np.zeros(size, x.dtype)
    for t in range(steps - 1, -1, -1):
        dz[t] = (dy[t] + dh) * (1 - h[t + 1] ** 2)
        dh = dz[t] @ w
    return dz @ u, dz.T @ x, dz.T @ h[:-1], dz.sum(axis=0)


@kernel(lambda: (positive(4, 4) + 3 * np.eye(4), normal(4)), lambda: (positive(48, 48) + 48 * np.eye(48), normal(48)))
def solve(a, b):
    """Gaussian elimination without pivoting, in copies."""
    n = a.shape[0]
    u = a.copy()
    y = b.copy()
    for k in range(n):
        for i in range(k + 1, n):
            factor = u[i, k] / u[k, k]
            for j in range(k, n):
                u[i, j] -= factor * u[k, j]
            y[i] -= factor * y[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            y[i] -= u[i, j] * y[j]
        y[i] /= u[i, i]
    return y
