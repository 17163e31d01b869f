"""The network that a configuration describes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from app.data.dataset import CLASSES
from app.engine import Scope
from app.errors import ConfigError, OperatorError, ShapeError
from app.files import LARGEST
from app.graph import Program, dynamic_mode, names, program_guard, static_mode
from app.nn import BatchNorm1D, Conv2D, Dropout, Layer, Linear, ParamAttr, Sequential, functional
from app.nn.functional.convolution import padding_of, pair
from app.nn.initializer import Initializer, KaimingUniform, XavierUniform
from app.ops import random
from app.ops.shaping import flatten, reshape
from app.ops.spec import UNKNOWN
from app.ops.windows import Padding, Pair, counts_of
from app.run.activation import Activation, evaluating
from app.run.config import Config, ModelConfig
from app.run.layers import (
    OF_IMAGES,
    AvgPool,
    BatchNorm,
    Conv,
    Dense,
    LayerConfig,
    MaxPool,
    activation_of,
    has_operator,
)
from app.run.layers import Dropout as LayerDropout
from app.run.nonfinite import warnings_off
from app.static import data
from app.static.model_file import SavedModel
from app.static.saving import for_use
from app.tensor import Tensor, no_grad

MOST_WEIGHTS = LARGEST["arrays"] // 8
"""The maximum number of a network's weights: with them, Adam's moments of two networks fit into a checkpoint."""


def refuse_contradictions(config: Config, images: int) -> None:
    """Refuse a network that does not apply the operator that its results are named after, and a batch of more images
    than there are for training."""
    model = config.model
    if not has_operator(model.all_layers):
        why = "each names its own operator" if model.layers else "the network has no hidden layers"
        raise ConfigError(
            f"no layer applies {model.activation}, because {why}: write activation: true in a layer of model.layers, "
            "or give model.hidden a width, as in model.hidden=[100]"
        )
    if config.train.batch_size > images:
        raise ConfigError(
            f"train.batch_size={config.train.batch_size} exceeds the number of training images, {images:,}: set a "
            f"smaller one, such as train.batch_size={max(1, min(100, images // 10))}"
        )


INITIALIZERS: dict[str, type[Initializer]] = {"xavier": XavierUniform, "kaiming": KaimingUniform}


ImageShape = int | tuple[int, ...]
"""The rows and columns of each image; the number of pixels is enough for dense layers."""


def pixels_of(image: ImageShape) -> int:
    """The number of pixels of an image."""
    return image if isinstance(image, int) else math.prod(image)


OF_OPERATORS = "activations."
"""How the paths of the operators' own parameters begin."""


class Network(Layer):
    """The layers of a configuration over uint8 images, with a custom or built-in operator that may have parameters.

    Images come as rows of pixels. Image layers get them as [images, channels, rows, columns].
    """

    def __init__(self, config: ModelConfig, activation: Activation, image: ImageShape, pixel_range: tuple[float, ...]):
        super().__init__("network")
        low, high = pixel_range
        self.scale, self.shift = (high - low) / 255.0, low
        builder = _Builder(config, image)
        self.first_shape = builder.shape
        self.steps = []
        self.shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        """The shape of the input and of the result of each operator between layers, per image."""
        for number, layer in enumerate(config.all_layers):
            self.steps.append(builder.step(layer, number))
            if choice := activation_of(layer):
                before, builder.shape = builder.shape, _chosen(choice, activation).shape_after(builder.shape)
                self.shapes.append((before, builder.shape))
        self.steps.append(builder.dense(CLASSES))
        self.layers, self.others = Sequential(*builder.layers), Sequential(*builder.others)
        self.between = [
            _chosen(choice, activation).for_one_layer() if choice else None
            for choice in (*map(activation_of, config.all_layers), False)
        ]
        self.activations = Sequential(*[a.layer for a in self.between if a is not None and a.layer is not None])

    def forward(self, image: Any) -> Any:
        """The scores of the classes."""
        return self.outputs(image)[-1]

    def outputs(self, image: Any) -> list[Any]:
        """Return the output of each layer with an operator, and the class scores."""
        applied, scores = self.applied(image)
        return [*(y for _, y in applied), scores]

    def applied(self, image: Any) -> tuple[list[tuple[Any, Any]], Any]:
        """Return the input and the output of each operator between layers, and the class scores."""
        x = image.astype("float32") * self.scale + self.shift
        if len(self.first_shape) > 1:
            x = reshape(x, [-1, *self.first_shape])
        pairs: list[tuple[Any, Any]] = []
        for step, operator in zip(self.steps, self.between, strict=True):
            x = step(x)
            if operator is not None:
                before, x = x, operator(x)
                _, expected = self.shapes[len(pairs)]
                pairs.append((before, x))
                if len(x.shape) != len(expected) + 1 or any(
                    actual not in (size, UNKNOWN) for actual, size in zip(x.shape[1:], expected, strict=True)
                ):
                    raise OperatorError(
                        f"{operator.name} made shape {list(x.shape)} of shape {list(before.shape)}, and "
                        f"{[before.shape[0], *expected]} when the network was built: the sizes after the first must "
                        "not depend on the batch or the numbers"
                    )
        return pairs, x

    def scores(self, images: np.ndarray) -> np.ndarray:
        """The scores of the classes for rows of pixels, without changing any state."""
        with self._used():
            parts = [self(Tensor(images[start : start + _AT_ONCE])) for start in range(0, len(images), _AT_ONCE)]
            return np.concatenate([part.numpy() for part in parts])

    def operator_values(self, images: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The input and the result of each operator between layers, without changing any state."""
        with self._used():
            return [(before.numpy(), after.numpy()) for before, after in self.applied(Tensor(images))[0]]

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Inside the block the network runs eagerly, in evaluation mode, and draws no random numbers of the process."""
        with dynamic_mode(), no_grad(), warnings_off(), random.Streams(0).drawing(), evaluating(self):
            yield


_AT_ONCE = 1000
"""The maximum number of images that are classified together."""


def trained_network(
    config: Config, activation: Activation, image: ImageShape, weights: Mapping[str, np.ndarray] | None = None
) -> Network:
    """Build the network of a configuration for trained weights, which runs eagerly."""
    with dynamic_mode(), names.guard(), random.Streams(0).drawing():
        network = Network(config.model, activation, image, config.data.pixel_range)
    if weights is not None:
        network.set_state_dict(weights)
    network.eval()
    return network


def _chosen(choice: bool | str, compared: Activation) -> Activation:
    """Return the operator after a layer that has one: the compared one, or the one named in the layer."""
    return compared.named(choice) if isinstance(choice, str) else compared


Compute = Callable[[Any], Any]
"""The function of a layer on a batch."""


class _Builder:
    """Builds the layers of a network in order, each for the output shape of the previous one."""

    def __init__(self, config: ModelConfig, image: ImageShape):
        self.layers: list[Layer] = []
        """The layers with parameters, in order; weights are named by their index."""
        self.others: list[Layer] = []
        """The layers that behave differently in training and evaluation."""
        self._weights = 0
        self._attr = ParamAttr(initializer=INITIALIZERS[config.initializer]())
        self.shape: tuple[int, ...] = (pixels_of(image),)
        """The input shape of the next layer per image: units, or channels, rows and columns."""
        if any(isinstance(layer, OF_IMAGES) for layer in config.all_layers):
            if isinstance(image, int) or len(image) != 2:
                raise ConfigError(f"layers for images need their rows and columns, found {image} pixels")
            self.shape = (1, *image)

    def step(self, layer: LayerConfig, number: int) -> Compute:
        """Build a layer that the configuration lists."""
        try:
            return _MAKERS[type(layer)](self, layer)
        except (ConfigError, ShapeError) as error:
            raise ConfigError(f"model.layers[{number}], {layer.kind}: {error}") from error

    def dense(self, units: int) -> Compute:
        """Build a dense layer. Images are flattened first."""
        before, self.shape = self.shape, (units,)
        self.require_room(math.prod(before) * units)
        layer = self.register(Linear(math.prod(before), units, weight_attr=self._attr))
        return layer if len(before) == 1 else lambda x: layer(flatten(x, 1))

    def conv(self, layer: Conv) -> Compute:
        """A convolution."""
        self.require_room(
            self.channels * layer.channels * math.prod(pair("conv", "kernel", layer.kernel)) // layer.groups
        )
        convolution = Conv2D(
            self.channels,
            layer.channels,
            layer.kernel,
            layer.stride,
            layer.padding,
            layer.dilation,
            layer.groups,
            weight_attr=self._attr,
        )
        around = padding_of(
            "conv", convolution.padding, convolution.kernel_size, convolution.stride, convolution.dilation
        )
        self.windows(layer.channels, convolution.kernel_size, convolution.stride, around, convolution.dilation)
        return self.register(convolution)

    def pool(self, layer: MaxPool | AvgPool) -> Compute:
        """Pooling."""
        kernel, padding = pair("pooling", "size", layer.size), layer.padding
        stride = kernel if layer.stride is None else pair("pooling", "stride", layer.stride)
        self.windows(self.channels, kernel, stride, padding_of("pooling", padding, kernel, stride))
        pool = functional.max_pool2d if isinstance(layer, MaxPool) else functional.avg_pool2d
        return partial(pool, kernel_size=kernel, stride=stride, padding=padding)

    def batch_norm(self, layer: BatchNorm) -> Compute:
        """Batch normalisation of channels or units."""
        return self.register(BatchNorm1D(self.shape[0], layer.momentum, layer.epsilon))

    def dropout(self, share: float) -> Compute:
        """Dropout."""
        self.others.append(Dropout(share))
        return self.others[-1]

    @property
    def channels(self) -> int:
        """The channels of the images at hand."""
        if len(self.shape) == 1:
            raise ConfigError("a layer for images cannot follow a dense layer")
        return self.shape[0]

    def windows(self, channels: int, kernel: Pair, stride: Pair, padding: Padding, dilation: Pair = (1, 1)) -> None:
        """Record the output shape of a layer with windows."""
        counts = counts_of((0, *self.shape), kernel, stride, padding, dilation)
        self.shape = (channels, *map(int, counts))

    def require_room(self, weights: int) -> None:
        """Refuse a network whose files could not be read again, before memory for it is allocated."""
        self._weights += weights
        if self._weights > MOST_WEIGHTS:
            raise ConfigError(
                f"the network has {self._weights:,} weights up to this layer; at most {MOST_WEIGHTS:,} are possible, "
                "as the files of a run have a largest size. Use smaller layers"
            )

    def register(self, layer: Layer) -> Layer:
        """Register a layer with parameters."""
        self.layers.append(layer)
        return layer


_MAKERS: dict[type, Callable[[_Builder, Any], Compute]] = {
    Dense: lambda builder, layer: builder.dense(layer.units),
    Conv: _Builder.conv,
    MaxPool: _Builder.pool,
    AvgPool: _Builder.pool,
    BatchNorm: _Builder.batch_norm,
    LayerDropout: lambda builder, layer: builder.dropout(layer.share),
}


def model_for_use(
    config: Config, activation: Activation, image_shape: ImageShape, weights: Mapping[str, np.ndarray]
) -> SavedModel:
    """Build the network of a configuration with these weights, named by their paths in it."""
    main, scope = Program(), Scope()
    with names.guard(), program_guard(main, Program()), static_mode():
        image = data("image", [None, pixels_of(image_shape)], "uint8")
        network = Network(config.model, activation, image_shape, config.data.pixel_range)
        network.eval()
        scores = network(image)
    scope.values = {variable.name: weights[path] for path, variable in network.named_parameters()}
    return for_use(main, [image.name], [scores.name], scope)
