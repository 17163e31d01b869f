"""Convolution and pooling with PyTorch's parameters: as functions and as modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from app.compat.torch._creation import CREATORS
from app.compat.torch._grad_fn import called
from app.compat.torch.nn import init
from app.compat.torch.nn._module import Module
from app.compat.torch.nn.parameter import Parameter
from app.errors import OperatorError, ShapeError
from app.nn import functional
from app.nn.functional.convolution import pair


def _of_images(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for one image as well, of shape (channels, height, width)."""

    @wraps(function)
    def of_images(input: Any, *args: Any, **settings: Any) -> Any:
        if input.ndim == 3:
            return function(input.unsqueeze(0), *args, **settings).squeeze(0)
        return function(input, *args, **settings)

    return of_images


@_of_images
def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """The sums of products of a weight with windows of images."""
    if isinstance(padding, str) and padding.lower() == "same" and pair("conv2d", "stride", stride) != (1, 1):
        raise OperatorError(f"conv2d: padding='same' is not supported for strided convolutions, found stride={stride}")
    return called("Convolution", functional.conv2d(input, weight, bias, stride, padding, dilation, groups))


@_of_images
def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest number of each window of images."""
    if pair("max_pool2d", "dilation", dilation) != (1, 1):
        raise OperatorError(f"max_pool2d: dilation must be 1 in this façade, found {dilation}")
    return functional.max_pool2d(input, kernel_size, stride, padding, return_indices, ceil_mode)


@_of_images
def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The mean of each window of images."""
    return functional.avg_pool2d(
        input, kernel_size, stride, padding, ceil_mode, not count_include_pad, divisor_override
    )


@_of_images
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """The means of as many parts of images as `output_size` says."""
    return called("AdaptiveAvgPool2D", functional.adaptive_avg_pool2d(input, output_size))


@_of_images
def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest numbers of as many parts of images as `output_size` says."""
    return called("AdaptiveMaxPool2D", functional.adaptive_max_pool2d(input, output_size, return_indices))


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Channels of images set to zero at random, the others made larger to keep the mean."""
    result = functional.dropout2d(input, p, training)
    return input.become(result) if inplace else result


FUNCTIONS = {
    function.__name__: function
    for function in (adaptive_avg_pool2d, adaptive_max_pool2d, avg_pool2d, conv2d, dropout2d, max_pool2d)
}


class Conv2d(Module):
    """A convolution of images with a weight and a bias that are learned."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        **where: Any,
    ):
        super().__init__()
        if padding_mode != "zeros":
            raise OperatorError(f"Conv2d: padding_mode must be 'zeros' in this façade, found {padding_mode!r}")
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"Conv2d: groups must divide in_channels and out_channels, found {groups}, {in_channels} and "
                f"{out_channels}"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = pair("Conv2d", "kernel_size", kernel_size), pair("Conv2d", "stride", stride)
        self.dilation, self.padding_mode = pair("Conv2d", "dilation", dilation), padding_mode
        self.padding = (padding, padding) if isinstance(padding, int) else padding
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(CREATORS["empty"](shape, **where))
        self.bias = Parameter(CREATORS["empty"]((out_channels,), **where)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """New random numbers, within one over the root of the number of inputs of a sum."""
        inputs = math.prod(self.weight.shape[1:])
        for parameter in self.parameters():
            init.uniform_(parameter, -1 / math.sqrt(inputs), 1 / math.sqrt(inputs))

    def forward(self, input: Any) -> Any:
        return conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        told = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        told += f", padding={self.padding}" if self.padding != (0, 0) else ""
        told += f", dilation={self.dilation}" if self.dilation != (1, 1) else ""
        told += f", groups={self.groups}" if self.groups != 1 else ""
        return told + (", bias=False" if self.bias is None else "")


class MaxPool2d(Module):
    """The greatest number of each window of images."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.return_indices, self.ceil_mode = padding, dilation, return_indices, ceil_mode

    def forward(self, input: Any) -> Any:
        settings = (self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)
        return max_pool2d(input, *settings)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class AvgPool2d(Module):
    """The mean of each window of images."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Any) -> Any:
        settings = (self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)
        return avg_pool2d(input, self.kernel_size, self.stride, *settings)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
