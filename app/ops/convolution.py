"""Convolution of images, and its gradients with respect to the images and to the weight.

All three are derivatives of one trilinear sum, `sum(conv2d(x, weight) * y)`: `conv2d` with respect to y, `conv2d_input`
to x, and `conv2d_weight` to the weight. The gradient of each is composed of the other two, to any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from app.errors import DtypeError, OperatorError, ShapeError
from app.ops.definition import operator
from app.ops.dtype import FLOATS
from app.ops.elementwise import floats
from app.ops.lowering import Convolution
from app.ops.rules import Call
from app.ops.spec import UNKNOWN, Spec
from app.ops.values import Array, Attributes, Gradients, Results, Value
from app.ops.windows import (
    Padding,
    Pair,
    across,
    check_images,
    check_like,
    check_windows,
    counts_of,
    padding_along,
    taps_along,
)

UNFOLDED = 1 << 22
"""The most bytes that the unfolded windows of a tile of images may take."""


_SETTINGS: Attributes = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}
"""The attributes of convolutions, with their defaults."""


def _infer_conv2d(
    x: Spec,
    weight: Spec,
    *,
    stride: Pair,
    padding: Padding,
    dilation: Pair,
    groups: int,
) -> Spec:
    check_images(x)
    if len(weight.shape) != 4 or 0 in weight.shape[2:]:
        expected = "[outputs, channels of a group, height, width]"
        raise ShapeError(f"expected a weight of shape {expected}, found shape {list(weight.shape)}")
    if x.dtype not in FLOATS or weight.dtype != x.dtype:
        raise DtypeError(f"expected values of one floating type, found {x.dtype} and {weight.dtype}")
    (outer, inner), kernel = weight.shape[:2], weight.shape[2:]
    if not isinstance(groups, int) or groups < 1 or (outer != UNKNOWN and outer % groups):
        raise ShapeError(f"groups must divide the {outer} outputs of the weight, found {groups!r}")
    if UNKNOWN not in (x.shape[1], inner) and x.shape[1] != inner * groups:
        times = f" * {groups} groups" if groups > 1 else ""
        raise ShapeError(
            f"the weight {weight} takes images of {inner}{times} channels, found {x.shape[1]} channels in {x}"
        )
    check_windows(stride, padding, dilation)
    return Spec((x.shape[0], outer, *counts_of(x.shape, kernel, stride, padding, dilation)), x.dtype)


class _Tiles:
    """The matrix products of a convolution, one for a few images at a time, whose windows are unfolded.

    Images are the last axis there, so that what is copied for an element of the windows is long.
    """

    def __init__(
        self,
        x_shape: Any,
        weight_shape: Any,
        dtype: Any,
        *,
        stride: Pair,
        padding: Padding,
        dilation: Pair,
        groups: int,
    ):
        self.images, self.channels, *self.sizes = x_shape
        self.groups, self.kernel = groups, weight_shape[2:]
        self.counts = tuple(map(int, counts_of(x_shape, self.kernel, stride, padding, dilation)))
        along = (
            taps_along(size, count, k, s, padding_along(padding, a, size, k, s, d)[0], d)
            for a, (size, count, k, s, d) in enumerate(
                zip(self.sizes, self.counts, self.kernel, stride, dilation, strict=True)
            )
        )
        self.taps = [((slice(None), *outer), (slice(None), *inner)) for (_, *outer), (_, *inner) in across(*along)]
        self.dtype = dtype
        self.inner = weight_shape[1] * len(self.taps)
        """The number of terms of each output: the elements of a window, over the channels of a group."""
        of_one_image = max(groups * self.inner * int(np.prod(self.counts)) * np.dtype(dtype).itemsize, 1)
        self.length = max(UNFOLDED // of_one_image, 1)

    def __iter__(self) -> Iterator[slice]:
        """The images of each tile."""
        return (slice(first, first + self.length) for first in range(0, self.images, self.length))

    def unfolded(self, x: Array) -> Array:
        """The windows of images: [groups, elements of a window, windows of all images]."""
        turned = np.ascontiguousarray(np.moveaxis(x, 0, -1))
        out = np.zeros((self.channels, len(self.taps), *self.counts, len(x)), self.dtype)
        for k, (windows, elements) in enumerate(self.taps):
            out[:, k][windows] = turned[elements]
        return out.reshape(self.groups, self.inner, -1)

    def fold(self, unfolded: Array, x: Array) -> None:
        """Add the elements of windows up in the images, the transpose of `unfolded`."""
        parts = unfolded.reshape(self.channels, len(self.taps), *self.counts, len(x))
        turned = np.zeros((self.channels, *self.sizes, len(x)), self.dtype)
        for k, (windows, elements) in enumerate(self.taps):
            turned[elements] += parts[:, k][windows]
        x[...] = np.moveaxis(turned, -1, 0)

    def by_group(self, y: Array) -> Array:
        """Outputs as [groups, outputs of a group, windows of all images]."""
        return np.ascontiguousarray(np.moveaxis(y, 0, -1)).reshape(self.groups, y.shape[1] // self.groups, -1)

    def weights(self, weight: Array) -> Array:
        """A weight as [groups, outputs of a group, elements of a window]."""
        return weight.reshape(self.groups, len(weight) // self.groups, self.inner)


@operator(_infer_conv2d, attributes=_SETTINGS, prepare=floats, checked=True, lowering=Convolution("y"))
def conv2d(x: Array, weight: Array, **settings: Any) -> Results:
    """Convolution: for each window and output channel, the sum of products with the weight."""
    tiles = _Tiles(x.shape, weight.shape, x.dtype, **settings)
    matrices = tiles.weights(weight)
    y = np.empty((len(x), len(weight), *tiles.counts), x.dtype)
    for some in tiles:
        result = np.matmul(matrices, tiles.unfolded(x[some])).reshape(len(weight), *tiles.counts, -1)
        y[some] = np.moveaxis(result, -1, 0)
    return y


def _infer_conv2d_input(y: Spec, weight: Spec, like: Spec, **settings: Any) -> Spec:
    check_like(y, _infer_conv2d(like, weight, **settings), "the convolution")
    return Spec(like.shape, y.dtype)


@operator(_infer_conv2d_input, attributes=_SETTINGS, checked=True, lowering=Convolution("x", takes=(0, 1)))
def conv2d_input(y: Array, weight: Array, like: Array, **settings: Any) -> Results:
    """Gradient with respect to the images, which have the shape of `like`; `y` is the gradient of the output."""
    tiles = _Tiles(like.shape, weight.shape, y.dtype, **settings)
    matrices = tiles.weights(weight).swapaxes(-1, -2)
    x = np.empty(like.shape, y.dtype)
    for some in tiles:
        tiles.fold(np.matmul(matrices, tiles.by_group(y[some])), x[some])
    return x


def _infer_conv2d_weight(x: Spec, y: Spec, like: Spec, **settings: Any) -> Spec:
    check_like(y, _infer_conv2d(x, like, **settings), "the convolution")
    return Spec(like.shape, y.dtype)


@operator(_infer_conv2d_weight, attributes=_SETTINGS, checked=True, lowering=Convolution("weight", takes=(0, 1)))
def conv2d_weight(x: Array, y: Array, like: Array, **settings: Any) -> Results:
    """Gradient with respect to the weight, which has the shape of `like`; `y` is the gradient of the output."""
    tiles = _Tiles(x.shape, like.shape, y.dtype, **settings)
    weight = np.zeros(like.shape, y.dtype)
    matrices = tiles.weights(weight)
    for some in tiles:
        matrices += np.matmul(tiles.by_group(y[some]), tiles.unfolded(x[some]).swapaxes(-1, -2))
    return weight


# Gradients


@conv2d.gradient_of("x")
def _(x_like: Value, weight: Value, dout: Value, call: Call) -> Gradients:
    return conv2d_input(dout, weight, x_like, **call.attributes)


@conv2d.gradient_of("weight")
def _(x: Value, weight_like: Value, dout: Value, call: Call) -> Gradients:
    return conv2d_weight(x, dout, weight_like, **call.attributes)


@conv2d_input.gradient_of("y")
def _(weight: Value, dout: Value, call: Call) -> Gradients:
    return conv2d(dout, weight, **call.attributes)


@conv2d_input.gradient_of("weight")
def _(y: Value, weight_like: Value, dout: Value, call: Call) -> Gradients:
    return conv2d_weight(dout, y, weight_like, **call.attributes)


@conv2d_weight.gradient_of("x")
def _(x_like: Value, y: Value, dout: Value, call: Call) -> Gradients:
    return conv2d_input(y, dout, x_like, **call.attributes)


@conv2d_weight.gradient_of("y")
def _(x: Value, dout: Value, call: Call) -> Gradients:
    return conv2d(x, dout, **call.attributes)


# In ONNX


def _pairs(shape: Any, kernel: Any, stride: Pair, padding: Padding, dilation: Pair) -> list[Pair]:
    """The padding of rows and columns, which depends on the sizes if it is "same"."""
    if padding == "same" and UNKNOWN in shape[2:]:
        raise OperatorError(f'with padding "same" the height and width must be known, found shape {list(shape)}')
    return [padding_along(padding, a, shape[2 + a], kernel[a], stride[a], dilation[a]) for a in (0, 1)]


def _settings_in_onnx(stride: Pair, pairs: Sequence[Pair], dilation: Pair, groups: int) -> dict[str, Any]:
    pads = [pair[end] for end in (0, 1) for pair in pairs]
    return {"strides": stride, "pads": pads, "dilations": dilation, "group": groups}


@conv2d.in_onnx
def _(onnx: Any, x: Any, weight: Any, stride: Pair, padding: Padding, dilation: Pair, groups: int) -> Any:
    pairs = _pairs(x.shape, weight.shape[2:], stride, padding, dilation)
    return onnx.Conv(x, weight, **_settings_in_onnx(stride, pairs, dilation, groups))
