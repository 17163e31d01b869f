"""Networks to look into: `opsmith inspect examples/networks.py:seed`, or `:deep`."""

from __future__ import annotations

from typing import Any

import opsmith
from opsmith import static


def seed() -> Any:
    """The network of configs/seed.yaml, statement by statement."""
    image = static.data("image", [None, 784])
    label = static.data("label", [None, 1], "int64")
    hidden = static.nn.fc(image, 100, activation="custom.relu")
    scores = static.nn.fc(hidden, 10)
    loss = opsmith.nn.functional.cross_entropy(scores, label, ignore_index=None)
    opsmith.optimizer.SGD(learning_rate=0.01).minimize(loss)
    return loss


def deep() -> Any:
    """The same with 64 hidden layers."""
    image = static.data("image", [None, 784])
    label = static.data("label", [None, 1], "int64")
    x = image
    for _ in range(64):
        x = static.nn.fc(x, 100, activation="custom.relu")
    loss = opsmith.nn.functional.cross_entropy(static.nn.fc(x, 10), label, ignore_index=None)
    opsmith.optimizer.SGD(learning_rate=0.01).minimize(loss)
    return loss
