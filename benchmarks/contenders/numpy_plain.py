"""NumPy, the gradient written by hand

Every batch works in buffers that are made once, and every operation that can be is done in place.
"""

import numpy as np

from benchmarks.work import initial_weights, run_epochs, scaled


def train(data, work):
    images, labels, tests = scaled(data.train_images), data.train_labels, scaled(data.test_images)
    random = np.random.default_rng(work.seed)
    (w1, b1), (w2, b2) = initial_weights(work)
    x_buffer = np.empty((work.batch, w1.shape[0]), np.float32)
    h_buffer, s_buffer, d_buffer = (np.empty((work.batch, n), np.float32) for n in (len(b1), len(b2), len(b1)))
    dw1, dw2 = np.empty_like(w1), np.empty_like(w2)
    lines = np.arange(work.batch)
    slope = np.float32(work.slope or 0)

    def step(rows):
        n = len(rows)
        x = np.take(images, rows, axis=0, out=x_buffer[:n], mode="clip")
        h = np.matmul(x, w1, out=h_buffer[:n])
        h += b1
        if slope:
            np.copyto(h, slope * h, where=h < 0)
        else:
            np.maximum(h, 0, out=h)
        s = np.matmul(h, w2, out=s_buffer[:n])
        s += b2
        s -= s.max(axis=1, keepdims=True)
        np.exp(s, out=s)
        s /= s.sum(axis=1, keepdims=True)
        s[lines[:n], labels[rows]] -= 1  # the gradient of the cross entropy, n times
        s *= work.rate / n
        d = np.matmul(s, w2.T, out=d_buffer[:n])
        d *= np.where(h > 0, np.float32(1), slope) if slope else h > 0
        np.subtract(w2, np.matmul(h.T, s, out=dw2), out=w2)
        np.subtract(b2, s.sum(axis=0), out=b2)
        np.subtract(w1, np.matmul(x.T, d, out=dw1), out=w1)
        np.subtract(b1, d.sum(axis=0), out=b1)

    def train_epoch():
        order = random.permutation(len(images))
        for first in range(0, len(order), work.batch):
            step(order[first : first + work.batch])

    def test():
        h = tests @ w1 + b1
        scores = np.maximum(h, slope * h) @ w2 + b2
        return float((scores.argmax(axis=1) == data.test_labels).mean())

    return run_epochs(work, train_epoch, test)
