"""Convolutions."""

from __future__ import annotations

import numpy as np
from derivative.kernels.registry import by_hand, kernel, normal


@kernel(lambda: (normal(2, 9), normal(3)), lambda: (normal(256, 512), normal(9)))
def conv1d(x, w):
    n = x.shape[1] - len(w) + 1
    y = np.empty((x.shape[0], n), x.dtype)
    for i in range(x.shape[0]):
        for t in range(n):
            total = 0.0
            for k in range(len(w)):
                total += x[i, t + k] * w[k]
            y[i, t] = total
    return y


@by_hand("conv1d")
def conv1d_backward(x, w, dy):
    dx = np.zeros_like(x)
    dw = np.zeros_like(w)
    for i in range(x.shape[0]):
        for t in range(dy.shape[1]):
            g = dy[i, t]
            for k in range(len(w)):
                dx[i, t + k] += g * w[k]
                dw[k] += g * x[i, t + k]
    return dx, dw


@kernel(lambda: (normal(2, 9), normal(3)), lambda: (normal(256, 512), normal(9)))
def conv1d_slices(x, w):
    k = w.shape[0]
    y = np.zeros((x.shape[0], x.shape[1] - k + 1), x.dtype)
    for j in range(k):
        y += x[:, j : x.shape[1] - k + 1 + j] * w[j]
    return y


@kernel(lambda: (normal(2, 2, 9), normal(3, 2, 3)), lambda: (normal(16, 8, 256), normal(16, 8, 5)))
def conv1d_strided(x, w, stride=2):
    n = (x.shape[2] - w.shape[2]) // stride + 1
    y = np.zeros((x.shape[0], w.shape[0], n), x.dtype)
    for b in range(x.shape[0]):
        for o in range(w.shape[0]):
            for c in range(x.shape[1]):
                for t in range(n):
                    for k in range(w.shape[2]):
                        y[b, o, t] += x[b, c, t * stride + k] * w[o, c, k]
    return y


@by_hand("conv1d_strided")
def conv1d_strided_backward(x, w, dy, stride=2):
    dx = np.zeros_like(x)
    dw = np.zeros_like(w)
    for b in range(x.shape[0]):
        for o in range(w.shape[0]):
            for c in range(x.shape[1]):
                for t in range(dy.shape[2]):
                    g = dy[b, o, t]
                    for k in range(w.shape[2]):
                        dx[b, c, t * stride + k] += g * w[o, c, k]
                        dw[o, c, k] += g * x[b, c, t * stride + k]
    return dx, dw


@kernel(lambda: (normal(2, 9), normal(3)), lambda: (normal(256, 512), normal(5)))
def conv1d_dilated(x, w, dilation=2):
    """Causal: what lies before the first element counts as zero."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for t in range(x.shape[1]):
            for k in range(w.shape[0]):
                source = t - k * dilation
                if source >= 0:
                    y[i, t] += w[k] * x[i, source]
    return y


@by_hand("conv1d_dilated")
def conv1d_dilated_backward(x, w, dy, dilation=2):
    dx = np.zeros_like(x)
    dw = np.zeros_like(w)
    for i in range(x.shape[0]):
        for t in range(x.shape[1]):
            g = dy[i, t]
            for k in range(w.shape[0]):
                source = t - k * dilation
                if source >= 0:
                    dw[k] += g * x[i, source]
                    dx[i, source] += g * w[k]
    return dx, dw


@kernel(lambda: (normal(2, 2, 5, 5), normal(2, 3, 3)), lambda: (normal(4, 16, 32, 32), normal(16, 3, 3)))
def depthwise_conv2d(x, w):
    n, channels, height, width = x.shape
    kh, kw = w.shape[1], w.shape[2]
    y = np.zeros((n, channels, height - kh + 1, width - kw + 1), x.dtype)
    for b in range(n):
        for c in range(channels):
            for i in range(height - kh + 1):
                for j in range(width - kw + 1):
                    total = 0.0
                    for p in range(kh):
                        for q in range(kw):
                            total += x[b, c, i + p, j + q] * w[c, p, q]
                    y[b, c, i, j] = total
    return y


@by_hand("depthwise_conv2d")
def depthwise_conv2d_backward(x, w, dy):
    n, channels, height, width = dy.shape
    dx = np.zeros_like(x)
    dw = np.zeros_like(w)
    for b in range(n):
        for c in range(channels):
            for p in range(w.shape[1]):
                for q in range(w.shape[2]):
                    total = 0.0
                    weight = w[c, p, q]
                    for i in range(height):
                        for j in range(width):
                            dx[b, c, i + p, j + q] += dy[b, c, i, j] * weight
                            total += dy[b, c, i, j] * x[b, c, i + p, j + q]
                    dw[c, p, q] += total
    return dx, dw
