"""Convolution and pooling of `torch.nn.functional`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from app.compat.torch._grad_fn import called
from app.errors import OperatorError
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


def _refuse_indices(where: str, return_indices: bool) -> None:
    if return_indices:
        raise OperatorError(f"{where}: indices are not returned in this façade; leave return_indices out")


def _check_padding(where: str, kernel: Any, padding: Any) -> None:
    """Refuse more padding than half of the kernel."""
    if isinstance(padding, str) or np.any(np.multiply(padding, 2) > np.asarray(kernel)):
        raise OperatorError(f"{where}: padding is at most half of kernel_size {kernel}, found {padding}")


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
    """The maximum of each window of images."""
    if pair("max_pool2d", "dilation", dilation) != (1, 1):
        raise OperatorError(f"max_pool2d: dilation must be 1 in this façade, found {dilation}")
    _refuse_indices("max_pool2d", return_indices)
    _check_padding("max_pool2d", kernel_size, padding)
    return functional.max_pool2d(input, kernel_size, stride, padding, ceil_mode=ceil_mode)


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
    _check_padding("avg_pool2d", kernel_size, padding)
    return functional.avg_pool2d(
        input, kernel_size, stride, padding, ceil_mode, not count_include_pad, divisor_override
    )


@_of_images
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """The means of as many parts of images as `output_size` says."""
    return called("AdaptiveAvgPool2D", functional.adaptive_avg_pool2d(input, output_size))


@_of_images
def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of as many parts of images as `output_size` says."""
    _refuse_indices("adaptive_max_pool2d", return_indices)
    return called("AdaptiveMaxPool2D", functional.adaptive_max_pool2d(input, output_size))
