"""Paddle dynamic graph, ReLU as a PyLayer"""

import numpy as np
import paddle
from paddle.autograd import PyLayer

from benchmarks.work import run_epochs, scaled


class ReLUFunction(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.clip(x, min=0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (y > 0).astype(dy.dtype)


class ReLU(paddle.nn.Layer):
    def forward(self, x):
        return ReLUFunction.apply(x)


def train(data, work):
    paddle.seed(work.seed)
    images, labels = paddle.to_tensor(scaled(data.train_images)), paddle.to_tensor(data.train_labels)
    tests = paddle.to_tensor(scaled(data.test_images))
    random = np.random.default_rng(work.seed)
    layers = []
    for a, b in zip(work.widths[:-1], work.widths[1:], strict=True):
        layers += [paddle.nn.Linear(a, b), ReLU()]
    model = paddle.nn.Sequential(*layers[:-1])
    loss = paddle.nn.CrossEntropyLoss()
    optimizer = paddle.optimizer.SGD(work.rate, parameters=model.parameters())

    def train_epoch():
        order = paddle.to_tensor(random.permutation(len(images)))
        for first in range(0, len(order), work.batch):
            rows = order[first : first + work.batch]
            loss(model(paddle.gather(images, rows)), paddle.gather(labels, rows)).backward()
            optimizer.step()
            optimizer.clear_grad()

    def test():
        with paddle.no_grad():
            return float((model(tests).numpy().argmax(1) == data.test_labels).mean())

    return run_epochs(work, train_epoch, test)
