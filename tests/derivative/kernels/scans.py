"""Recursions along a row."""

from __future__ import annotations

import numpy as np
from derivative.kernels.registry import by_hand, kernel, normal, positive


@kernel(lambda: (normal(3, 6),), lambda: (normal(512, 256),))
def cumsum(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
            y[i, j] = total
    return y


@by_hand("cumsum")
def cumsum_backward(x, dy):
    dx = np.empty_like(x)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1] - 1, -1, -1):
            total += dy[i, j]
            dx[i, j] = total
    return dx


@kernel(lambda: (positive(3, 6),), lambda: (positive(512, 256),))
def cumprod(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        product = 1.0
        for j in range(x.shape[1]):
            product *= x[i, j]
            y[i, j] = product
    return y


@by_hand("cumprod")
def cumprod_backward(x, dy):
    n, d = x.shape
    dx = np.empty_like(x)
    before = np.empty(d, x.dtype)
    for i in range(n):
        product = 1.0
        for j in range(d):
            before[j] = product
            product *= x[i, j]
        dproduct = 0.0
        for j in range(d - 1, -1, -1):
            dproduct += dy[i, j]
            dx[i, j] = dproduct * before[j]
            dproduct *= x[i, j]
    return dx


@kernel(lambda: (normal(3, 6), positive(1, scale=0.4)), lambda: (normal(512, 256), positive(1, scale=0.4)))
def ema(x, alpha):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        state = x[i, 0]
        for t in range(x.shape[1]):
            state = alpha[0] * x[i, t] + (1 - alpha[0]) * state
            y[i, t] = state
    return y


@by_hand("ema")
def ema_backward(x, alpha, dy):
    n, d = x.shape
    a = alpha[0]
    dx = np.empty_like(x)
    dalpha = np.zeros_like(alpha)
    before = np.empty(d, x.dtype)
    for i in range(n):
        state = x[i, 0]
        for t in range(d):
            before[t] = state
            state = a * x[i, t] + (1 - a) * state
        dstate = 0.0
        da = 0.0
        for t in range(d - 1, -1, -1):
            dstate += dy[i, t]
            da += dstate * (x[i, t] - before[t])
            dx[i, t] = dstate * a
            dstate *= 1 - a
        dx[i, 0] += dstate
        dalpha[0] += da
    return dx, dalpha


@kernel(
    lambda: (normal(2, 8), positive(3, scale=0.3), positive(2, seed=1, scale=0.3)),
    lambda: (normal(256, 512), positive(3, scale=0.3), positive(2, seed=1, scale=0.3)),
)
def iir(x, b, a):
    """The direct form of a filter."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for t in range(x.shape[1]):
            total = 0.0
            for k in range(min(len(b), t + 1)):
                total += b[k] * x[i, t - k]
            for k in range(1, min(len(a), t) + 1):
                total -= a[k - 1] * y[i, t - k]
            y[i, t] = total
    return y


@kernel(
    lambda: (normal(2, 8), positive(5, scale=0.3)),
    lambda: (normal(256, 512), positive(5, scale=0.3)),
)
def biquad(x, c):
    """A filter of second order with its state in two numbers."""
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        s1, s2 = 0.0, 0.0
        for t in range(x.shape[1]):
            out = c[0] * x[i, t] + s1
            s1 = c[1] * x[i, t] - c[3] * out + s2
            s2 = c[2] * x[i, t] - c[4] * out
            y[i, t] = out
    return y


@by_hand("biquad")
def biquad_backward(x, c, dy):
    n, d = x.shape
    dx = np.empty_like(x)
    dc = np.zeros_like(c)
    out = np.empty(d, x.dtype)
    c0, c1, c2, c3, c4 = c[0], c[1], c[2], c[3], c[4]
    g0, g1, g2, g3, g4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        s1, s2 = 0.0, 0.0
        for t in range(d):
            y = c0 * x[i, t] + s1
            s1 = c1 * x[i, t] - c3 * y + s2
            s2 = c2 * x[i, t] - c4 * y
            out[t] = y
        d1, d2 = 0.0, 0.0
        for t in range(d - 1, -1, -1):
            v = x[i, t]
            g2 += d2 * v
            g4 -= d2 * out[t]
            g1 += d1 * v
            g3 -= d1 * out[t]
            dout = dy[i, t] - d2 * c4 - d1 * c3
            dx[i, t] = d2 * c2 + d1 * c1 + dout * c0
            g0 += dout * v
            d2 = d1
            d1 = dout
    dc[0], dc[1], dc[2], dc[3], dc[4] = g0, g1, g2, g3, g4
    return dx, dc


@kernel(lambda: (normal(3, 6),), lambda: (normal(512, 256),))
def prefix_max(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        best = -np.inf
        for j in range(x.shape[1]):
            if x[i, j] > best:
                best = x[i, j]
            y[i, j] = best
    return y


@by_hand("prefix_max")
def prefix_max_backward(x, dy):
    dx = np.zeros_like(x)
    for i in range(x.shape[0]):
        best = -np.inf
        at = 0
        for j in range(x.shape[1]):
            if x[i, j] > best:
                best = x[i, j]
                at = j
            dx[i, at] += dy[i, j]
    return dx
