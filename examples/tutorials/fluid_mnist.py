"""Paddle 1: MNIST with a ReLU of one's own, built as a Program and run by an Executor."""

import random

import numpy as np
import paddle
import paddle.fluid as fluid

BATCH_SIZE = 100


def relu(x):
    return np.maximum(x, 0)


def relu_grad(y, dy):
    return np.array(dy) * (np.array(y) > 0)


def network(image):
    hidden = fluid.layers.fc(input=image, size=64)
    block = fluid.default_main_program().current_block()
    activated = block.create_var(name="activated", dtype=hidden.dtype, shape=hidden.shape)
    hidden = fluid.layers.py_func(
        func=relu, x=hidden, out=activated, backward_func=relu_grad, skip_vars_in_backward_input=hidden
    )
    return fluid.layers.fc(input=hidden, size=10, act="softmax")


fluid.default_startup_program().random_seed = 1
image = fluid.data(name="image", shape=[None, 784], dtype="float32")
label = fluid.data(name="label", shape=[None, 1], dtype="int64")
prediction = network(image)
loss = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))
accuracy = fluid.layers.accuracy(input=prediction, label=label)
test_program = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.SGD(learning_rate=0.1).minimize(loss)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())


def arrays(batch):
    images, labels = zip(*batch, strict=True)
    return {"image": np.array(images, "float32"), "label": np.array(labels, "int64").reshape(-1, 1)}


# Readers are functions that give iterators; they are put together from others.
random.seed(1)  # which shuffle draws from
train = paddle.reader.shuffle(paddle.reader.firstn(paddle.dataset.mnist.train(), 8000), buf_size=8000)
train_batches = paddle.batch(train, batch_size=BATCH_SIZE)
test_batches = paddle.batch(paddle.reader.firstn(paddle.dataset.mnist.test(), 2000), batch_size=BATCH_SIZE)

for epoch in range(3):
    for number, batch in enumerate(train_batches()):
        value, share = exe.run(feed=arrays(batch), fetch_list=[loss.name, accuracy.name])
        if number % 40 == 0:
            print(f"epoch {epoch} batch {number}: loss {value}, accuracy {share}")
    shares = [exe.run(test_program, feed=arrays(b), fetch_list=[accuracy])[0] for b in test_batches()]
    print(f"epoch {epoch}: more than two in three are right: {np.mean(shares) > 0.67}")

# Prints:
# epoch 0 batch 0: loss […], accuracy […]
# epoch 0 batch 40: loss […], accuracy […]
# epoch 0: more than two in three are right: True
# epoch 1 batch 0: loss […], accuracy […]
# epoch 1 batch 40: loss […], accuracy […]
# epoch 1: more than two in three are right: True
# epoch 2 batch 0: loss […], accuracy […]
# epoch 2 batch 40: loss […], accuracy […]
# epoch 2: more than two in three are right: True
