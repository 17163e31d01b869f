"""Data on its way into a network: data sets, loaders, and a training loop over batches with a metric."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle.io import DataLoader, Dataset, random_split
from paddle.metric import Accuracy

paddle.seed(3)
np.random.seed(3)


class Rings(Dataset):
    """Points of the plane, and whether they lie inside the unit circle."""

    def __init__(self, count):
        super().__init__()
        self.points = np.random.uniform(-1.6, 1.6, [count, 2]).astype("float32")
        self.inside = (np.square(self.points).sum(axis=1) < 1.0).astype("int64")

    def __getitem__(self, index):
        return self.points[index], self.inside[index : index + 1]

    def __len__(self):
        return len(self.points)


rings = Rings(1200)
train, test = random_split(rings, [1000, 200])
print(len(rings), len(train), len(test), rings[0][0].shape, rings[0][1].dtype)

loader = DataLoader(train, batch_size=64, shuffle=True, drop_last=True)
points, labels = next(iter(loader))
print(len(loader), points.shape, points.dtype, labels.shape, labels.dtype)

network = paddle.nn.Sequential(paddle.nn.Linear(2, 32), paddle.nn.ReLU(), paddle.nn.Linear(32, 2))
schedule = paddle.optimizer.lr.StepDecay(learning_rate=0.02, step_size=5, gamma=0.5)
optimizer = paddle.optimizer.Adam(learning_rate=schedule, parameters=network.parameters())
metric = Accuracy()

for epoch in range(10):
    metric.reset()
    for points, labels in loader():
        scores = network(points)
        loss = F.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        metric.update(metric.compute(scores, labels))
    schedule.step()
    if epoch % 5 == 0:
        print("epoch", epoch, "learning rate", optimizer.get_lr(), "loss below 0.7:", loss.item() < 0.7)
print("training: nine in ten are right:", metric.accumulate() > 0.9)

network.eval()
metric.reset()
with paddle.no_grad():
    for points, labels in DataLoader(test, batch_size=200):
        metric.update(metric.compute(network(points), labels))
print("test: nine in ten are right:", metric.accumulate() > 0.9)

# Prints:
# 1200 1000 200 (2,) int64
# 15 [64, 2] float32 [64, 1] int64
# epoch 0 learning rate 0.02 loss below 0.7: True
# epoch 5 learning rate 0.01 loss below 0.7: True
# training: nine in ten are right: True
# test: nine in ten are right: True
