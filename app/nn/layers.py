"""The layers of a dense network."""

from __future__ import annotations

from typing import Any

from app.nn import functional
from app.nn.layer import Layer


class Linear(Layer):
    """`x @ weight + bias`."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ):
        super().__init__(name)
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = None if bias_attr is False else self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, x: Any) -> Any:
        return functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.weight.shape[0]}, out_features={self.weight.shape[1]}"


def _is_named(layer: Any) -> bool:
    return isinstance(layer, tuple) and len(layer) == 2 and isinstance(layer[0], str)


class Sequential(Layer):
    """Layers, each working on the result of the one before; a pair of a name and a layer names it."""

    def __init__(self, *layers: Any):
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], (list, tuple)) and not _is_named(layers[0]):
            layers = tuple(layers[0])
        for index, layer in enumerate(layers):
            self.add_sublayer(*(layer if _is_named(layer) else (str(index), layer)))

    def forward(self, x: Any) -> Any:
        for layer in self.children():
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(list(self.children()))

    def __getitem__(self, index: int) -> Layer:
        return list(self.children())[index]


class Flatten(Layer):
    """Axes made one; at first all but the batch's."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1):
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, x: Any) -> Any:
        return functional.flatten(x, self.start_axis, self.stop_axis)


class ReLU(Layer):
    def forward(self, x: Any) -> Any:
        return functional.relu(x)


class LeakyReLU(Layer):
    def __init__(self, negative_slope: float = 0.01, name: str | None = None):
        super().__init__(name)
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Any:
        return functional.leaky_relu(x, self.negative_slope)


class Tanh(Layer):
    def forward(self, x: Any) -> Any:
        return functional.tanh(x)


class Sigmoid(Layer):
    def forward(self, x: Any) -> Any:
        return functional.sigmoid(x)


class Softmax(Layer):
    def __init__(self, axis: int = -1, name: str | None = None):
        super().__init__(name)
        self.axis = axis

    def forward(self, x: Any) -> Any:
        return functional.softmax(x, self.axis)


class CrossEntropyLoss(Layer):
    """Cross entropy of scores and hard labels."""

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", use_softmax: bool = True):
        super().__init__()
        if weight is not None:
            raise NotImplementedError("CrossEntropyLoss knows no weights of classes")
        self.ignore_index, self.reduction, self.use_softmax = ignore_index, reduction, use_softmax

    def forward(self, input: Any, label: Any) -> Any:
        return functional.cross_entropy(
            input, label, ignore_index=self.ignore_index, reduction=self.reduction, use_softmax=self.use_softmax
        )


class MSELoss(Layer):
    """The mean of squared differences."""

    def __init__(self, reduction: str = "mean"):
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Any, label: Any) -> Any:
        return functional.mse_loss(input, label, self.reduction)
