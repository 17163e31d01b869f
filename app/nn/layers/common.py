"""Layers that are neither activations, normalisations nor losses."""

from __future__ import annotations

from typing import Any

from app.nn import functional as F  # noqa: N812 - the name that it has everywhere
from app.nn.layer import Layer


class Linear(Layer):
    """A fully connected layer: `x @ weight + bias`, with a weight of shape [in_features, out_features]."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ):
        super().__init__(name)
        self.in_features, self.out_features = in_features, out_features
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, x: Any) -> Any:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, dtype={self.weight.dtype}"


class Flatten(Layer):
    """Merges axes into one; by default all but the first."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1):
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, x: Any) -> Any:
        return F.flatten(x, self.start_axis, self.stop_axis)


class Dropout(Layer):
    """In training, sets elements to 0 with probability `p`."""

    def __init__(
        self,
        p: float = 0.5,
        axis: Any = None,
        mode: str = "upscale_in_train",
        name: str | None = None,
    ):
        super().__init__(name)
        self.p, self.axis, self.mode = p, axis, mode

    def forward(self, x: Any) -> Any:
        return F.dropout(x, self.p, self.axis, self.training, mode=self.mode)

    def extra_repr(self) -> str:
        return f"p={self.p}, axis={self.axis}, mode={self.mode}"
