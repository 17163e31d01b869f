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
    """Dense layers over uint8 images, with a custom or built-in operator between them, which may have parameters."""

    def __init__(self, config: ModelConfig, activation: Activation, pixels: int, pixel_range: tuple[float, float]):
        super().__init__("network")
        low, high = pixel_range
        self.scale, self.shift = (high - low) / 255.0, low
        widths = [pixels, *config.hidden, CLASSES]
        attr = ParamAttr(initializer=INITIALIZERS[config.initializer]())
        self.layers = Sequential(*[Linear(a, b, weight_attr=attr) for a, b in pairwise(widths)])
        self.between = [activation.for_one_layer() for _ in config.hidden]
        self.activations = Sequential(*[a.layer for a in self.between if a.layer is not None])

    def forward(self, image: Any) -> Any:
        """The scores of the classes."""
        return self.outputs(image)[-1]

    def outputs(self, image: Any) -> list[Any]:
        """What each layer gives: the hidden ones after their activation, then the scores of the classes."""
        x = image.astype("float32") * self.scale + self.shift
        *hidden, last = self.layers.children()
        found = []
        for layer, activation in zip(hidden, self.between, strict=True):
            x = activation(layer(x))
            found.append(x)
        return [*found, last(x)]
