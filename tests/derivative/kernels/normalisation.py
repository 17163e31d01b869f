"""Normalisation of rows and of columns."""

from __future__ import annotations

import math

import numpy as np
from derivative.kernels.registry import by_hand, kernel, normal


def _small():
    return normal(4, 6), normal(6, seed=1), normal(6, seed=2)


def _large():
    return normal(512, 256), normal(256, seed=1), normal(256, seed=2)


@kernel(_small, _large)
def layernorm(x, scale, offset, epsilon=1e-5):
    n, d = x.shape
    y = np.empty_like(x)
    for i in range(n):
        mean = 0.0
        for j in range(d):
            mean += x[i, j]
        mean /= d
        variance = 0.0
        for j in range(d):
            variance += (x[i, j] - mean) ** 2
        inverse = 1.0 / math.sqrt(variance / d + epsilon)
        for j in range(d):
            y[i, j] = (x[i, j] - mean) * inverse * scale[j] + offset[j]
    return y


@kernel(_small, _large)
def layernorm_rows(x, scale, offset):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        centred = x[i] - x[i].mean()
        y[i] = centred / np.sqrt(np.mean(centred**2) + 1e-5) * scale + offset
    return y


@by_hand("layernorm", "layernorm_rows")
def layernorm_backward(x, scale, offset, dy, epsilon=1e-5):
    n, d = x.shape
    dx = np.empty_like(x)
    dscale = np.zeros_like(scale)
    doffset = np.zeros_like(offset)
    for i in range(n):
        mean = 0.0
        for j in range(d):
            mean += x[i, j]
        mean /= d
        variance = 0.0
        for j in range(d):
            variance += (x[i, j] - mean) ** 2
        inverse = 1.0 / math.sqrt(variance / d + epsilon)
        first = 0.0
        second = 0.0
        for j in range(d):
            unit = (x[i, j] - mean) * inverse
            dunit = dy[i, j] * scale[j]
            dscale[j] += dy[i, j] * unit
            doffset[j] += dy[i, j]
            first += dunit
            second += dunit * unit
        first /= d
        second /= d
        for j in range(d):
            unit = (x[i, j] - mean) * inverse
            dx[i, j] = (dy[i, j] * scale[j] - first - unit * second) * inverse
    return dx, dscale, doffset


@kernel(lambda: (normal(4, 6), normal(6, seed=1)), lambda: (normal(512, 256), normal(256)))
def rmsnorm(x, scale):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        inverse = 1 / np.sqrt(total / x.shape[1] + 1e-6)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * inverse * scale[j]
    return y


@by_hand("rmsnorm")
def rmsnorm_backward(x, scale, dy):
    n, d = x.shape
    dx = np.empty_like(x)
    dscale = np.zeros_like(scale)
    for i in range(n):
        total = 0.0
        dot = 0.0
        for j in range(d):
            total += x[i, j] * x[i, j]
            dot += dy[i, j] * scale[j] * x[i, j]
        inverse = 1 / np.sqrt(total / d + 1e-6)
        part = dot * inverse**3 / d
        for j in range(d):
            dscale[j] += dy[i, j] * x[i, j] * inverse
            dx[i, j] = dy[i, j] * scale[j] * inverse - part * x[i, j]
    return dx, dscale


@kernel(lambda: (normal(5, 4), normal(4, seed=1), normal(4, seed=2)), _large)
def batchnorm(x, scale, offset):
    mean = x.sum(axis=0) / x.shape[0]
    centred = x - mean
    variance = (centred * centred).sum(axis=0) / x.shape[0]
    return centred / np.sqrt(variance + 1e-5) * scale + offset


@by_hand("batchnorm")
def batchnorm_backward(x, scale, offset, dy):
    n, d = x.shape
    dx = np.empty_like(x)
    mean = np.zeros_like(scale)
    inverse = np.zeros_like(scale)
    dscale = np.zeros_like(scale)
    doffset = np.zeros_like(offset)
    for i in range(n):
        for j in range(d):
            mean[j] += x[i, j] / n
    for i in range(n):
        for j in range(d):
            centred = x[i, j] - mean[j]
            inverse[j] += centred * centred / n
            dscale[j] += dy[i, j] * centred
            doffset[j] += dy[i, j]
    for j in range(d):
        inverse[j] = 1 / np.sqrt(inverse[j] + 1e-5)
        dscale[j] *= inverse[j]
    for i in range(n):
        for j in range(d):
            unit = (x[i, j] - mean[j]) * inverse[j]
            dx[i, j] = scale[j] * inverse[j] * (dy[i, j] - doffset[j] / n - unit * dscale[j] / n)
    return dx, dscale, doffset
