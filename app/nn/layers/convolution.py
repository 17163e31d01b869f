"""Convolution and pooling as layers."""

from __future__ import annotations

import math
from typing import Any

from app.errors import ShapeError
from app.nn import functional as F  # noqa: N812 - the name that it has everywhere
from app.nn.functional.convolution import pair
from app.nn.initializer import Normal
from app.nn.layer import Layer
from app.nn.layers.of_function import REQUIRED, layer_of


class Conv2D(Layer):
    """2-D convolution of images of shape [images, channels, height, width] with a trained weight.

    `padding` is a number, (height, width), (top, bottom, left, right), "same" or "valid".
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ):
        super().__init__(name)
        kind = type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"{kind}: groups must divide both in_channels and out_channels, found {groups} groups of "
                f"{in_channels} and {out_channels} channels"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = pair(kind, "kernel_size", kernel_size), pair(kind, "stride", stride)
        self.dilation, self.padding = pair(kind, "dilation", dilation), padding
        shape = [out_channels, in_channels // groups, *self.kernel_size]
        first = Normal(0.0, math.sqrt(2.0 / (in_channels * math.prod(self.kernel_size))))  # as in Paddle
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=first)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x: Any) -> Any:
        return F.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={list(self.kernel_size)}"
        others = {
            "stride": [*self.stride],
            "padding": self.padding,
            "dilation": [*self.dilation],
            "groups": self.groups,
        }
        usual = {"stride": [1, 1], "padding": 0, "dilation": [1, 1], "groups": 1}
        parts = [f"{name}={value}" for name, value in others.items() if value != usual[name]]
        return ", ".join([text, *parts])


_WINDOWS = ("kernel_size", "stride", "padding")

MaxPool2D = layer_of(
    "MaxPool2D", F.max_pool2d, _WINDOWS,
    kernel_size=REQUIRED, stride=None, padding=0, ceil_mode=False,
)  # fmt: skip
AvgPool2D = layer_of(
    "AvgPool2D", F.avg_pool2d, _WINDOWS,
    kernel_size=REQUIRED, stride=None, padding=0, ceil_mode=False, exclusive=True,
)  # fmt: skip
