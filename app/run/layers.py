"""The layers that a configuration can list between the pixels and the classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1, description="a whole number of at least 1")]
Share = Annotated[
    float, Meta(ge=0, le=0.9999999, description="a number of at least 0 and less than 1, in single precision")
]
Two = Meta(min_length=2, max_length=2)
Sizes = Annotated[
    Count | Annotated[tuple[Count, ...], Two],
    Meta(description="a whole number of at least 1, or two in a list: [height, width]"),
]
Border = Annotated[int, Meta(ge=0, description="a whole number of at least 0")]
Padding = Annotated[
    Literal["same", "valid"] | Border | Annotated[tuple[Border, ...], Two],
    Meta(description="'same', 'valid', a whole number of at least 0, or two in a list: [height, width]"),
]
OPERATOR = r"^(?:(?:custom\.)?[^\W\d]\w*|.+\.py:[^\W\d]\w*)(?:\(.*\))?\Z"
"""The pattern of an operator's name."""
OwnActivation = Annotated[
    bool | Annotated[str, Meta(pattern=OPERATOR)],
    Meta(
        description="true (model.activation and the operators it is compared with), false (none), or an operator for "
        "this layer alone: a built-in one ('tanh'), a shipped custom one ('custom.relu') or your own "
        "('path/to/my_ops.py:swish')"
    ),
]


class _Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type"):
    @property
    def kind(self) -> str:
        """The layer's `type` in the configuration."""
        return str(self.__struct_config__.tag)


class Dense(_Layer, frozen=True, kw_only=True, tag="dense"):
    """A dense (fully connected) layer."""

    units: Count
    activation: OwnActivation = True


class Conv(_Layer, frozen=True, kw_only=True, tag="conv"):
    """A convolution."""

    channels: Count
    kernel: Sizes
    stride: Sizes = 1
    padding: Padding = 0
    dilation: Sizes = 1
    groups: Count = 1
    activation: OwnActivation = True


class MaxPool(_Layer, frozen=True, kw_only=True, tag="max_pool"):
    """Max pooling."""

    size: Sizes
    stride: Sizes | None = None
    padding: Padding = 0


class AvgPool(_Layer, frozen=True, kw_only=True, tag="avg_pool"):
    """Average pooling."""

    size: Sizes
    stride: Sizes | None = None
    padding: Padding = 0


class BatchNorm(_Layer, frozen=True, kw_only=True, tag="batch_norm"):
    """Batch normalisation of each channel, or of each unit after a dense layer."""

    momentum: Share = 0.9
    epsilon: Annotated[float, Meta(gt=0, description="a number greater than 0")] = 1e-5
    activation: OwnActivation = False


class Dropout(_Layer, frozen=True, kw_only=True, tag="dropout"):
    """Dropout."""

    share: Share


LayerConfig = Dense | Conv | MaxPool | AvgPool | BatchNorm | Dropout
KINDS: dict[str, type[_Layer]] = {
    str(kind.__struct_config__.tag): kind for kind in (Dense, Conv, MaxPool, AvgPool, BatchNorm, Dropout)
}
"""The layers by their `type`."""
OF_IMAGES = (Conv, MaxPool, AvgPool)


def activation_of(layer: LayerConfig) -> bool | str:
    """Return True for the compared operators, the name of the layer's own activation, or False."""
    return getattr(layer, "activation", False)


def operators_named_in(layers: Sequence[LayerConfig]) -> list[str]:
    """Return the operators that layers name for themselves, each once."""
    return [name for name in dict.fromkeys(map(activation_of, layers)) if isinstance(name, str)]


def has_operator(layers: Sequence[LayerConfig]) -> bool:
    """Return whether any layer uses the compared operators."""
    return any(activation_of(layer) is True for layer in layers)


def width_of(layers: Sequence[LayerConfig]) -> int | None:
    """Return the width of the operators' inputs: the units or channels of the first layer that uses them."""
    sizes = [
        layer.units if isinstance(layer, Dense) else layer.channels
        for layer in layers
        if isinstance(layer, (Dense, Conv)) and activation_of(layer) is True
    ]
    return sizes[0] if sizes else None


def layer_names(layers: Sequence[LayerConfig]) -> list[str]:
    """Return a short form of the layers, such as conv6, max_pool2 and 120, without those that keep the shape."""
    names = []
    for layer in layers:
        if isinstance(layer, Dense):
            names.append(str(layer.units))
        elif isinstance(layer, Conv):
            names.append(f"conv{layer.channels}")
        elif isinstance(layer, (MaxPool, AvgPool)):
            names.append(f"{layer.kind}{_side(layer.size)}")
    return names


def _side(size: Any) -> str:
    return str(size) if isinstance(size, int) else "x".join(map(str, size))
