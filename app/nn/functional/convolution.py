"""Convolution and pooling of images: what users may write for kernel sizes, strides and padding, brought to one form.

Images have the axes [images, channels, height, width].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from app.errors import ShapeError
from app.ops import convolution, pooling
from app.ops.shaping import reshape
from app.ops.spec import UNKNOWN
from app.ops.windows import Padding, Pair

__all__ = [
    "avg_pool2d",
    "conv2d",
    "max_pool2d",
]

Sizes = int | Sequence[int]
"""One number for height and width, or one for each."""


def conv2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Any = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Any:
    """2-D convolution of images with a weight of shape [outputs, channels / groups, height, width].

    `padding` is a number, one for height and one for width, [top, bottom, left, right], "valid" (none) or "same": as
    many windows as rows and columns, divided by the stride.
    """
    steps, apart = pair("conv2d", "stride", stride), pair("conv2d", "dilation", dilation)
    around = padding_of("conv2d", padding, weight.shape[2:], steps, apart)
    out = convolution.conv2d(x, weight, stride=steps, padding=around, dilation=apart, groups=groups)
    if bias is None:
        return out
    if UNKNOWN not in (bias.shape[0], weight.shape[0]) and bias.shape[0] != weight.shape[0]:
        raise ShapeError(f"conv2d: a bias of shape {list(bias.shape)} for {weight.shape[0]} channels")
    return out + reshape(bias, [1, -1, 1, 1])


def max_pool2d(
    x: Any,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Any = 0,
    ceil_mode: bool = False,
) -> Any:
    """2-D max pooling: the maximum of each window. `stride` is by default the size of the windows."""
    return pooling.max_pool2d(x, **_windows("max_pool2d", kernel_size, stride, padding, ceil_mode))


def avg_pool2d(
    x: Any,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
) -> Any:
    """2-D average pooling: the mean of each window; with `exclusive`, without the padding."""
    settings = _windows("avg_pool2d", kernel_size, stride, padding, ceil_mode)
    return pooling.avg_pool2d(x, **settings, exclusive=bool(exclusive))


def pair(where: str, setting: str, sizes: Any) -> Pair:
    """The sizes for height and width."""
    numbers = (sizes, sizes) if isinstance(sizes, int) else tuple(sizes) if isinstance(sizes, (list, tuple)) else ()
    if len(numbers) == 1:
        numbers = numbers * 2
    if len(numbers) != 2 or not all(isinstance(size, int) and size >= 1 for size in numbers):
        raise ShapeError(
            f"{where}: {setting} must be a whole number of at least 1, or two of them (height, width), found {sizes!r}"
        )
    return cast(Pair, numbers)


def padding_of(where: str, padding: Any, kernel: Any, stride: Pair, dilation: Pair = (1, 1)) -> Padding:
    """The elements around the images: ((top, bottom), (left, right)), or "same" where they depend on the size."""
    if isinstance(padding, str):
        if padding.lower() == "valid":
            return ((0, 0), (0, 0))
        if padding.lower() == "same":
            if stride != (1, 1):
                return "same"
            totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
            return cast(Padding, tuple((total // 2, total - total // 2) for total in totals))
    elif isinstance(padding, int):
        return _not_negative(where, padding, ((padding, padding), (padding, padding)))
    elif isinstance(padding, (list, tuple)):
        listed = list(padding)
        if len(listed) == 4 and all(isinstance(one, (list, tuple)) for one in listed):  # one pair for each axis
            if any(size for axis in listed[:2] for size in axis):
                raise ShapeError(f"{where}: only height and width can have padding, found {padding!r}")
            listed = listed[2:]
        if len(listed) == 1:
            listed = listed * 2
        if len(listed) == 4:
            listed = [listed[:2], listed[2:]]
        pairs = tuple(tuple(one) if isinstance(one, (list, tuple)) else (one, one) for one in listed)
        if len(pairs) == 2 and all(len(one) == 2 and all(isinstance(n, int) for n in one) for one in pairs):
            return _not_negative(where, padding, cast(Padding, pairs))
    raise ShapeError(
        f'{where}: padding must be "same", "valid", a whole number, (height, width) or (top, bottom, left, right), '
        f"found {padding!r}"
    )


def _not_negative(where: str, padding: Any, pairs: Padding) -> Padding:
    if any(size < 0 for one in pairs for size in cast(Pair, one)):
        raise ShapeError(f"{where}: padding must not be negative, found {padding!r}")
    return pairs


def _windows(where: str, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool) -> dict[str, Any]:
    kernel = pair(where, "kernel_size", kernel_size)
    steps = kernel if stride is None or stride == [] else pair(where, "stride", stride)
    around = padding_of(where, padding, kernel, steps)
    return {"kernel": kernel, "stride": steps, "padding": around, "ceil_mode": bool(ceil_mode)}
