"""Paddle 1: words as rows of a table, a rate that falls with every run, figures gathered over batches."""

import numpy as np
import paddle.fluid as fluid

words = fluid.data(name="words", shape=[None, 5], dtype="int64")
label = fluid.data(name="label", shape=[None, 1], dtype="int64")
rows = fluid.embedding(input=words, size=[50, 8])
score = fluid.layers.fc(input=fluid.layers.reduce_mean(rows, dim=1), size=2, act="softmax")
loss = fluid.layers.mean(fluid.layers.cross_entropy(input=score, label=label))
accuracy = fluid.layers.accuracy(input=score, label=label)

rate = fluid.layers.exponential_decay(learning_rate=2.0, decay_steps=50, decay_rate=0.5, staircase=True)
optimizer = fluid.optimizer.Adagrad(learning_rate=rate)
optimizer.minimize(loss)

executor = fluid.Executor(fluid.CPUPlace())
executor.run(fluid.default_startup_program())

# Half of the words are friendly; a sentence is as its words are, most of them.
rng = np.random.default_rng(0)
for epoch in range(3):
    mean_loss, mean_accuracy = fluid.average.WeightedAverage(), fluid.metrics.Accuracy()
    for _ in range(40):
        sentences = rng.integers(0, 50, (32, 5))
        friendly = ((sentences < 25).sum(axis=1, keepdims=True) > 2).astype("int64")
        found = executor.run(feed={"words": sentences, "label": friendly}, fetch_list=[loss, accuracy])
        mean_loss.add(value=found[0], weight=32)
        mean_accuracy.update(value=found[1], weight=32)
    print(
        f"epoch {epoch}: rate {optimizer.get_lr():.2f}, below 0.3: {mean_loss.eval() < 0.3}, "
        f"above 0.95: {mean_accuracy.eval() > 0.95}"
    )

# Prints:
# epoch 0: rate 2.00, below 0.3: False, above 0.95: False
# epoch 1: rate 1.00, below 0.3: True, above 0.95: True
# epoch 2: rate 0.50, below 0.3: True, above 0.95: True
