"""Networks for pictures, without pretrained weights."""

from __future__ import annotations

from typing import Any

from app.nn import Conv2D, Layer, Linear, MaxPool2D, ReLU, Sequential
from app.ops.shaping import flatten

__all__ = ["LeNet"]


def __dir__() -> list[str]:
    return __all__


class LeNet(Layer):
    """LeNet for digits of 28 x 28 pixels, as in Paddle: the first convolution is 3 x 3.

    Without classes (`num_classes=0`) it gives 16 channels of 5 x 5.
    """

    def __init__(self, num_classes: int = 10):
        super().__init__()
        self.num_classes = num_classes
        self.features = Sequential(
            Conv2D(1, 6, 3, stride=1, padding=1),
            ReLU(),
            MaxPool2D(2, 2),
            Conv2D(6, 16, 5, stride=1, padding=0),
            ReLU(),
            MaxPool2D(2, 2),
        )
        if num_classes > 0:
            self.fc = Sequential(Linear(400, 120), Linear(120, 84), Linear(84, num_classes))

    def forward(self, inputs: Any) -> Any:
        x = self.features(inputs)
        return self.fc(flatten(x, 1)) if self.num_classes > 0 else x
