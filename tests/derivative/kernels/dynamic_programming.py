"""Dynamic programming, soft and hard: alignments and chains."""

from __future__ import annotations

import math

import numpy as np
from derivative.kernels.registry import by_hand, kernel, normal, positive
from numba import njit


@njit
def softmin(a, b, c, gamma):
    least = min(a, b, c)
    total = math.exp((least - a) / gamma) + math.exp((least - b) / gamma) + math.exp((least - c) / gamma)
    return least - gamma * math.log(total)


@kernel(lambda: (normal(4, 2), normal(5, 2)), lambda: (normal(128, 4), normal(128, 4, seed=1)))
def soft_dtw(x, z, gamma=0.5):
    n, m = len(x), len(z)
    cost = np.full((n + 1, m + 1), 1e10)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            distance = 0.0
            for k in range(x.shape[1]):
                distance += (x[i - 1, k] - z[j - 1, k]) ** 2
            cost[i, j] = distance + softmin(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1], gamma)
    return cost[n, m] * np.ones(1)


@by_hand("soft_dtw")
def soft_dtw_backward(x, z, dy, gamma=0.5):
    n, m = len(x), len(z)
    cost = np.full((n + 1, m + 1), 1e10)
    least = np.empty((n + 1, m + 1))
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            distance = 0.0
            for k in range(x.shape[1]):
                distance += (x[i - 1, k] - z[j - 1, k]) ** 2
            least[i, j] = softmin(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1], gamma)
            cost[i, j] = distance + least[i, j]
    dcost = np.zeros((n + 1, m + 1))
    dcost[n, m] = dy[0]
    dx = np.zeros_like(x)
    dz = np.zeros_like(z)
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            g = dcost[i, j]
            dcost[i - 1, j] += g * math.exp((least[i, j] - cost[i - 1, j]) / gamma)
            dcost[i, j - 1] += g * math.exp((least[i, j] - cost[i, j - 1]) / gamma)
            dcost[i - 1, j - 1] += g * math.exp((least[i, j] - cost[i - 1, j - 1]) / gamma)
            for k in range(x.shape[1]):
                part = 2 * g * (x[i - 1, k] - z[j - 1, k])
                dx[i - 1, k] += part
                dz[j - 1, k] -= part
    return dx, dz


@kernel(lambda: (normal(5, 4), normal(4, 4), normal(4)), lambda: (normal(128, 32), normal(32, 32), normal(32)))
def crf(emission, transition, start):
    """The logarithm of the sum over all paths of a linear chain."""
    steps, states = emission.shape
    alpha = np.empty_like(emission)
    alpha[0] = start + emission[0]
    for t in range(1, steps):
        for k in range(states):
            largest = -np.inf
            for j in range(states):
                largest = max(largest, alpha[t - 1, j] + transition[j, k])
            total = 0.0
            for j in range(states):
                total += math.exp(alpha[t - 1, j] + transition[j, k] - largest)
            alpha[t, k] = largest + math.log(total) + emission[t, k]
    last = alpha[steps - 1]
    y = np.empty(1)
    y[0] = last.max() + np.log(np.sum(np.exp(last - last.max())))
    return y


@by_hand("crf")
def crf_backward(emission, transition, start, dy):
    steps, states = emission.shape
    alpha = np.empty_like(emission)
    alpha[0] = start + emission[0]
    for t in range(1, steps):
        for k in range(states):
            largest = -np.inf
            for j in range(states):
                largest = max(largest, alpha[t - 1, j] + transition[j, k])
            total = 0.0
            for j in range(states):
                total += math.exp(alpha[t - 1, j] + transition[j, k] - largest)
            alpha[t, k] = largest + math.log(total) + emission[t, k]
    demission = np.zeros_like(emission)
    dtransition = np.zeros_like(transition)
    e = np.exp(alpha[steps - 1] - alpha[steps - 1].max())
    demission[steps - 1] = dy[0] * e / e.sum()
    for t in range(steps - 1, 0, -1):
        for k in range(states):
            shift = alpha[t, k] - emission[t, k]
            for j in range(states):
                part = demission[t, k] * math.exp(alpha[t - 1, j] + transition[j, k] - shift)
                demission[t - 1, j] += part
                dtransition[j, k] += part
    return demission, dtransition, demission[0].copy()


@kernel(lambda: (normal(5, 4), normal(4, 4)), lambda: (normal(128, 32), normal(32, 32)))
def viterbi(emission, transition):
    """The best score that ends in each state."""
    steps, states = emission.shape
    score = emission[0].copy()
    for t in range(1, steps):
        following = np.empty_like(score)
        for k in range(states):
            best = score[0] + transition[0, k]
            for j in range(1, states):
                best = max(best, score[j] + transition[j, k])
            following[k] = best + emission[t, k]
        score = following
    return score


@by_hand("viterbi")
def viterbi_backward(emission, transition, dy):
    steps, states = emission.shape
    came_from = np.empty((steps, states), np.int64)
    score = emission[0].copy()
    following = np.empty_like(score)
    for t in range(1, steps):
        for k in range(states):
            best = score[0] + transition[0, k]
            at = 0
            for j in range(1, states):
                other = score[j] + transition[j, k]
                if other > best:
                    best = other
                    at = j
            following[k] = best + emission[t, k]
            came_from[t, k] = at
        score[:] = following
    demission = np.zeros_like(emission)
    dtransition = np.zeros_like(transition)
    demission[steps - 1] = dy
    for t in range(steps - 1, 0, -1):
        for k in range(states):
            demission[t - 1, came_from[t, k]] += demission[t, k]
            dtransition[came_from[t, k], k] += demission[t, k]
    return demission, dtransition


@kernel(lambda: (normal(5, 3), np.array([1, 2])), lambda: (normal(128, 32), np.arange(1, 31)))
def ctc(logits, label):
    """Minus the logarithm of the sum over all alignments of a label with blanks."""
    steps = logits.shape[0]
    states = 2 * len(label) + 1
    alpha = np.full((steps, states), -1e30)
    alpha[0, 0] = logits[0, 0]
    alpha[0, 1] = logits[0, label[0]]
    for t in range(1, steps):
        for s in range(states):
            symbol = 0 if s % 2 == 0 else label[s // 2]
            total = alpha[t - 1, s]
            if s > 0:
                total = np.logaddexp(total, alpha[t - 1, s - 1])
            if s > 1 and s % 2 == 1 and symbol != label[s // 2 - 1]:
                total = np.logaddexp(total, alpha[t - 1, s - 2])
            alpha[t, s] = total + logits[t, symbol]
    loss = np.empty(1)
    loss[0] = -np.logaddexp(alpha[steps - 1, states - 1], alpha[steps - 1, states - 2])
    return loss


@kernel(lambda: (positive(4, 5), positive(1)), lambda: (positive(128, 128), positive(1)))
def soft_edit_distance(substitution, gap, gamma=0.7):
    """The edit distance with a soft minimum, in two rows."""
    n, m = substitution.shape
    row = np.empty(m + 1)
    for j in range(m + 1):
        row[j] = j * gap[0]
    for i in range(n):
        following = np.empty(m + 1)
        following[0] = (i + 1) * gap[0]
        for j in range(m):
            a = row[j] + substitution[i, j]
            b = row[j + 1] + gap[0]
            c = following[j] + gap[0]
            least = min(a, min(b, c))
            total = np.exp((least - a) / gamma) + np.exp((least - b) / gamma) + np.exp((least - c) / gamma)
            following[j + 1] = least - gamma * np.log(total)
        row = following
    return row[m:]
