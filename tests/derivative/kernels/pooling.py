"""Pooling and resampling of images."""

from __future__ import annotations

import numpy as np
from derivative.kernels.registry import by_hand, kernel, normal, positive


@kernel(lambda: (normal(2, 2, 4, 6),), lambda: (normal(16, 8, 64, 64),))
def average_pool(x):
    n, channels, height, width = x.shape
    y = np.zeros((n, channels, height // 2, width // 2), x.dtype)
    for b in range(n):
        for c in range(channels):
            for i in range(height // 2):
                for j in range(width // 2):
                    for p in range(2):
                        for q in range(2):
                            y[b, c, i, j] += x[b, c, 2 * i + p, 2 * j + q] / 4
    return y


@by_hand("average_pool")
def average_pool_backward(x, dy):
    dx = np.zeros_like(x)
    for b in range(dy.shape[0]):
        for c in range(dy.shape[1]):
            for i in range(dy.shape[2]):
                for j in range(dy.shape[3]):
                    g = dy[b, c, i, j] / 4
                    for p in range(2):
                        for q in range(2):
                            dx[b, c, 2 * i + p, 2 * j + q] = g
    return dx


@kernel(lambda: (normal(2, 2, 4, 6),), lambda: (normal(16, 8, 64, 64),))
def max_pool(x):
    n, channels, height, width = x.shape
    y = np.empty((n, channels, height // 2, width // 2), x.dtype)
    for b in range(n):
        for c in range(channels):
            for i in range(height // 2):
                for j in range(width // 2):
                    best = -np.inf
                    for p in range(2):
                        for q in range(2):
                            value = x[b, c, 2 * i + p, 2 * j + q]
                            if value > best:
                                best = value
                    y[b, c, i, j] = best
    return y


@kernel(lambda: (normal(2, 2, 4, 6),), lambda: (normal(16, 8, 64, 64),))
def max_pool_places(x):
    """It remembers where the largest one is."""
    n, channels, height, width = x.shape
    y = np.empty((n, channels, height // 2, width // 2), x.dtype)
    for b in range(n):
        for c in range(channels):
            for i in range(0, height - 1, 2):
                for j in range(0, width - 1, 2):
                    row, column = i, j
                    for p in range(i, i + 2):
                        for q in range(j, j + 2):
                            if x[b, c, p, q] > x[b, c, row, column]:
                                row, column = p, q
                    y[b, c, i // 2, j // 2] = x[b, c, row, column]
    return y


@by_hand("max_pool", "max_pool_places")
def max_pool_backward(x, dy):
    dx = np.zeros_like(x)
    for b in range(dy.shape[0]):
        for c in range(dy.shape[1]):
            for i in range(dy.shape[2]):
                for j in range(dy.shape[3]):
                    row, column = 2 * i, 2 * j
                    best = x[b, c, row, column]
                    for p in range(2 * i, 2 * i + 2):
                        for q in range(2 * j, 2 * j + 2):
                            if x[b, c, p, q] > best:
                                best = x[b, c, p, q]
                                row, column = p, q
                    dx[b, c, row, column] = dy[b, c, i, j]
    return dx


@kernel(
    lambda: (normal(5, 4), positive(6, seed=1), positive(6, seed=2)),
    lambda: (normal(128, 128), positive(20000, seed=1, scale=80.0), positive(20000, seed=2, scale=80.0)),
)
def resample(image, rows, columns):
    """Bilinear interpolation at points of an image."""
    y = np.empty(rows.shape[0], image.dtype)
    for k in range(rows.shape[0]):
        i = int(np.floor(rows[k]))
        j = int(np.floor(columns[k]))
        u = rows[k] - i
        v = columns[k] - j
        top = (1 - v) * image[i, j] + v * image[i, j + 1]
        bottom = (1 - v) * image[i + 1, j] + v * image[i + 1, j + 1]
        y[k] = (1 - u) * top + u * bottom
    return y


@by_hand("resample")
def resample_backward(image, rows, columns, dy):
    dimage = np.zeros_like(image)
    drows = np.empty_like(rows)
    dcolumns = np.empty_like(columns)
    for k in range(rows.shape[0]):
        i = int(rows[k])
        j = int(columns[k])
        u = rows[k] - i
        v = columns[k] - j
        g = dy[k]
        a, b, c, d = image[i, j], image[i, j + 1], image[i + 1, j], image[i + 1, j + 1]
        dimage[i, j] += g * (1 - u) * (1 - v)
        dimage[i, j + 1] += g * (1 - u) * v
        dimage[i + 1, j] += g * u * (1 - v)
        dimage[i + 1, j + 1] += g * u * v
        drows[k] = g * ((1 - v) * (c - a) + v * (d - b))
        dcolumns[k] = g * ((1 - u) * (b - a) + u * (d - c))
    return dimage, drows, dcolumns


@kernel(lambda: (normal(4, 5),), lambda: (normal(512, 512),))
def total_variation(image):
    total = 0.0
    for i in range(image.shape[0] - 1):
        for j in range(image.shape[1] - 1):
            down = image[i + 1, j] - image[i, j]
            right = image[i, j + 1] - image[i, j]
            total += np.sqrt(down**2 + right**2 + 1e-6)
    return np.array([total])


@by_hand("total_variation")
def total_variation_backward(image, dy):
    dimage = np.zeros_like(image)
    for i in range(image.shape[0] - 1):
        for j in range(image.shape[1] - 1):
            down = image[i + 1, j] - image[i, j]
            right = image[i, j + 1] - image[i, j]
            g = dy[0] / np.sqrt(down**2 + right**2 + 1e-6)
            dimage[i + 1, j] += g * down
            dimage[i, j + 1] += g * right
            dimage[i, j] -= g * (down + right)
    return dimage
