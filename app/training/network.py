"""The network that a configuration describes: pixels to classes through dense layers and one activation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from app.data.dataset import CLASSES
from app.nn import Layer, Linear, ParamAttr, Sequential
from app.nn.initializer import Initializer, KaimingUniform, XavierUniform
from app.training.activation import Activation
from app.training.config import ModelConfig

INITIALIZERS: dict[str, type[Initializer]] = {"xavier": XavierUniform, "kaiming": KaimingUniform}


class Network(Layer):
    """Dense layers over uint8 images, with a custom or built-in operator between them."""

    def __init__(self, config: ModelConfig, activation: Activation, pixels: int, pixel_range: tuple[float, float]):
        super().__init__("network")
        low, high = pixel_range
        self.scale, self.shift = (high - low) / 255.0, low
        self.activation = activation
        widths = [pixels, *config.hidden, CLASSES]
        attr = ParamAttr(initializer=INITIALIZERS[config.initializer]())
        self.layers = Sequential(*[Linear(a, b, weight_attr=attr) for a, b in pairwise(widths)])

    def forward(self, image: Any) -> Any:
        """The scores of the classes."""
        x = image.astype("float32") * self.scale + self.shift
        *hidden, last = self.layers.children()
        for layer in hidden:
            x = self.activation(layer(x))
        return last(x)
