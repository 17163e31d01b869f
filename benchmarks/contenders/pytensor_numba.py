"""PyTensor, Numba mode"""

import numpy as np
import pytensor
import pytensor.tensor as pt

from benchmarks.work import initial_weights, run_epochs

pytensor.config.floatX = "float32"


def train(data, work):
    random = np.random.default_rng(work.seed)
    images, labels = pytensor.shared(data.train_images, borrow=True), pytensor.shared(data.train_labels, borrow=True)
    layers = [tuple(pytensor.shared(value) for value in layer) for layer in initial_weights(work)]
    rows, image = pt.lvector("rows"), pt.matrix("image", dtype="uint8")
    logs = pt.special.log_softmax(network(images[rows], layers), axis=1)
    loss = -logs[pt.arange(rows.shape[0]), labels[rows]].mean()
    values = [value for layer in layers for value in layer]
    rate = np.float32(work.rate)
    updates = [(v, v - rate * g) for v, g in zip(values, pytensor.grad(loss, values), strict=True)]
    step = pytensor.function([rows], [], updates=updates, mode="NUMBA", trust_input=True)
    classify = pytensor.function([image], network(image, layers).argmax(axis=1), mode="NUMBA", trust_input=True)

    def train_epoch():
        order = random.permutation(len(data.train_images))
        for first in range(0, len(order), work.batch):
            step(order[first : first + work.batch])

    return run_epochs(work, train_epoch, lambda: float((classify(data.test_images) == data.test_labels).mean()))


def network(image, layers):
    x = image * np.float32(2 / 255) - np.float32(1)
    for w, b in layers[:-1]:
        x = pt.maximum(pt.dot(x, w) + b, 0)
    w, b = layers[-1]
    return pt.dot(x, w) + b
