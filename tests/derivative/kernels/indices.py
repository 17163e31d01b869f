"""Arrays that are read or written at indices from other arrays, or found by searching."""

from __future__ import annotations

import numpy as np
from derivative.kernels.registry import by_hand, kernel, normal, places, positive


@kernel(lambda: (normal(6, 3), np.array([1, 5, 1, 0])), lambda: (normal(512, 64), places(2048, 512)))
def gather(table, index):
    y = np.empty((len(index), table.shape[1]), table.dtype)
    for i in range(len(index)):
        y[i] = table[index[i]]
    return y


@by_hand("gather")
def gather_backward(table, index, dy):
    dtable = np.zeros_like(table)
    for i in range(len(index)):
        row = index[i]
        for j in range(table.shape[1]):
            dtable[row, j] += dy[i, j]
    return dtable


@kernel(lambda: (normal(6), np.array([0, 2, 2, 1, 0, 2])), lambda: (normal(100000), places(100000, 3)))
def scatter_add(x, index, size=3):
    y = np.zeros(size, x.dtype)
    for i in range(x.shape[0]):
        y[index[i]] += x[i] * x[i]
    return y


@by_hand("scatter_add")
def scatter_add_backward(x, index, dy, size=3):
    dx = np.empty_like(x)
    for i in range(x.shape[0]):
        dx[i] = 2 * x[i] * dy[index[i]]
    return dx


@kernel(
    lambda: (normal(6, 3), np.array([1, 5, 1, 0, 2]), np.array([0, 2, 5]), positive(5)),
    lambda: (normal(512, 64), places(2048, 512), np.arange(0, 2049, 8), positive(2048)),
)
def embedding_bag(table, index, offset, weight):
    """The weighted sum of the rows of each bag."""
    y = np.zeros((len(offset) - 1, table.shape[1]), table.dtype)
    for bag in range(len(offset) - 1):
        for i in range(offset[bag], offset[bag + 1]):
            for j in range(table.shape[1]):
                y[bag, j] += weight[i] * table[index[i], j]
    return y


@by_hand("embedding_bag")
def embedding_bag_backward(table, index, offset, weight, dy):
    dtable = np.zeros_like(table)
    dweight = np.empty_like(weight)
    for bag in range(len(offset) - 1):
        for i in range(offset[bag], offset[bag + 1]):
            total = 0.0
            row, factor = index[i], weight[i]
            for j in range(table.shape[1]):
                dtable[row, j] += factor * dy[bag, j]
                total += dy[bag, j] * table[row, j]
            dweight[i] = total
    return dtable, dweight


@kernel(
    lambda: (np.array([0.0, 1.0, 2.5, 3.0, 4.2]), normal(5), np.array([0.5, 1.2, 2.7, 3.9])),
    lambda: (np.arange(64.0), normal(64), positive(20000, scale=40.0)),
)
def spline(knots, values, at):
    """A natural cubic spline: second derivatives by elimination, then an interval for each point."""
    n = len(knots)
    c = np.zeros(n)
    d = np.zeros(n)
    for i in range(1, n - 1):
        left = knots[i] - knots[i - 1]
        right = knots[i + 1] - knots[i]
        rhs = 6 * ((values[i + 1] - values[i]) / right - (values[i] - values[i - 1]) / left)
        pivot = 2 * (left + right) - left * c[i - 1]
        c[i] = right / pivot
        d[i] = (rhs - left * d[i - 1]) / pivot
    second = np.zeros(n)
    for i in range(n - 2, 0, -1):
        second[i] = d[i] - c[i] * second[i + 1]
    y = np.empty_like(at)
    for q in range(len(at)):
        k = 0
        while k < n - 2 and at[q] > knots[k + 1]:
            k += 1
        h = knots[k + 1] - knots[k]
        a = (knots[k + 1] - at[q]) / h
        b = (at[q] - knots[k]) / h
        bend = (a**3 - a) * second[k] + (b**3 - b) * second[k + 1]
        y[q] = a * values[k] + b * values[k + 1] + bend * h * h / 6
    return y


@kernel(lambda: (normal(3, 5),), lambda: (normal(256, 32),))
def bubble_sort(x):
    y = x.copy()
    for i in range(x.shape[0]):
        for end in range(x.shape[1] - 1, 0, -1):
            for j in range(end):
                if y[i, j] > y[i, j + 1]:
                    y[i, j], y[i, j + 1] = y[i, j + 1], y[i, j]
    return y


@kernel(lambda: (normal(4, 6), normal(6)), lambda: (normal(512, 64), normal(64)))
def first_passage(x, w):
    """What is added up until it is more than one; negative elements are left out."""
    total = np.zeros(x.shape[0], x.dtype)
    steps = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] < -1:
                continue
            total[i] += np.sin(x[i, j] * w[j]) ** 2
            if total[i] > 1:
                break
            steps[i, j] = total[i]
    return total, steps
