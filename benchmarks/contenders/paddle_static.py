"""Paddle static graph, built-in ReLU"""

import numpy as np
import paddle

from benchmarks.work import CLASSES, PIXELS, run_epochs, scaled


def train(data, work, relu=paddle.nn.functional.relu):
    paddle.enable_static()
    paddle.seed(work.seed)
    images, labels, tests = scaled(data.train_images), data.train_labels[:, None], scaled(data.test_images)
    random = np.random.default_rng(work.seed)
    training, testing, startup = paddle.static.Program(), paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(training, startup):
        label = paddle.static.data("label", [None, 1], "int64")
        loss = paddle.nn.functional.cross_entropy(network(work, relu), label)
        paddle.optimizer.SGD(work.rate).minimize(loss)
    with paddle.static.program_guard(testing, paddle.static.Program()):
        scores = network(work, relu)  # parameters of the same names, so the same weights
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(startup)

    def train_epoch():
        order = random.permutation(len(images))
        for first in range(0, len(order), work.batch):
            rows = order[first : first + work.batch]
            executor.run(training, feed={"image": images[rows], "label": labels[rows]}, fetch_list=[loss])

    def test():
        (found,) = executor.run(testing, feed={"image": tests}, fetch_list=[scores])
        return float((found.argmax(1) == data.test_labels).mean())

    return run_epochs(work, train_epoch, test)


def network(work, relu):
    x = paddle.static.data("image", [None, PIXELS], "float32")
    for i, width in enumerate(work.hidden):
        x = relu(layer(x, width, i))
    return layer(x, CLASSES, len(work.hidden))


def layer(x, width, i):
    w, b = paddle.ParamAttr(name=f"w{i}"), paddle.ParamAttr(name=f"b{i}")
    return paddle.static.nn.fc(x, width, weight_attr=w, bias_attr=b)
