"""Paddle static graph, built-in ReLU"""

import numpy as np
import paddle

from benchmarks.work import CLASSES, PIXELS, run_epochs, scaled


def train(data, work, relu=paddle.nn.functional.relu):
    paddle.enable_static()
    paddle.seed(work.seed)
    images, labels, tests = scaled(data.train_images), data.train_labels[:, None], scaled(data.test_images)
    random = np.random.default_rng(work.seed)
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        image = paddle.static.data("image", [None, PIXELS], "float32")
        label = paddle.static.data("label", [None, 1], "int64")
        x = image
        for width in work.hidden:
            x = relu(paddle.static.nn.fc(x, width))
        scores = paddle.static.nn.fc(x, CLASSES)
        loss = paddle.nn.functional.cross_entropy(scores, label)
        testing = main.clone(for_test=True)
        paddle.optimizer.SGD(work.rate).minimize(loss)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(startup)

    def train_epoch():
        order = random.permutation(len(images))
        for first in range(0, len(order), work.batch):
            rows = order[first : first + work.batch]
            executor.run(main, feed={"image": images[rows], "label": labels[rows]}, fetch_list=[loss])

    def test():
        feed = {"image": tests, "label": data.test_labels[:, None]}
        (found,) = executor.run(testing, feed=feed, fetch_list=[scores])
        return float((found.argmax(1) == data.test_labels).mean())

    return run_epochs(work, train_epoch, test)
