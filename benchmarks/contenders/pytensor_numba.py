"""PyTensor, Numba mode"""

import numpy as np
import pytensor
import pytensor.tensor as pt

from benchmarks.work import initial_weights, run_epochs, scaled

pytensor.config.floatX = "float32"


def train(data, work):
    images, labels, tests = scaled(data.train_images), data.train_labels, scaled(data.test_images)
    random = np.random.default_rng(work.seed)
    layers = [tuple(pytensor.shared(value) for value in layer) for layer in initial_weights(work)]
    x, y = pt.fmatrix("x"), pt.lvector("y")
    scores = network(x, layers)
    logs = pt.special.log_softmax(scores, axis=1)
    loss = -logs[pt.arange(y.shape[0]), y].mean()
    values = [value for layer in layers for value in layer]
    rate = np.float32(work.rate)
    updates = [(v, v - rate * g) for v, g in zip(values, pytensor.grad(loss, values), strict=True)]
    step = pytensor.function([x, y], [], updates=updates, mode="NUMBA", trust_input=True)
    classify = pytensor.function([x], scores.argmax(axis=1), mode="NUMBA", trust_input=True)

    def train_epoch():
        order = random.permutation(len(images))
        for first in range(0, len(order), work.batch):
            rows = order[first : first + work.batch]
            step(images[rows], labels[rows])

    return run_epochs(work, train_epoch, lambda: float((classify(tests) == data.test_labels).mean()))


def network(x, layers):
    for w, b in layers[:-1]:
        x = pt.maximum(pt.dot(x, w) + b, 0)
    w, b = layers[-1]
    return pt.dot(x, w) + b
