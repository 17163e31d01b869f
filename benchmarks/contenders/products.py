"""The five matrix products alone, no training

NumPy's own OpenBLAS with its own threads, on one batch that stays where it is.
"""

import numpy as np

from benchmarks.work import initial_weights, run_epochs


def train(data, work):
    random = np.random.default_rng(work.seed)
    (w1, _), (w2, _) = initial_weights(work)
    whole, rest = divmod(len(data.train_images), work.batch)
    sizes = [work.batch] * whole + [rest] * (rest > 0)
    places = {}
    for n in set(sizes):
        x, h, s = (random.standard_normal((n, width), np.float32) for width in work.widths)
        places[n] = (x, h, s, np.empty_like(h), np.empty_like(s), np.empty_like(w1), np.empty_like(w2))

    def train_epoch():
        for n in sizes:
            x, h, s, h_out, s_out, dw1, dw2 = places[n]
            np.matmul(x, w1, out=h_out)
            np.matmul(h, w2, out=s_out)
            np.matmul(s, w2.T, out=h_out)
            np.matmul(h.T, s, out=dw2)
            np.matmul(x.T, h, out=dw1)

    return run_epochs(work, train_epoch, lambda: None)
