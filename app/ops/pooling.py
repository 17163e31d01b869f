"""Pooling of images: the maximum or the mean of each window, and the operators of their gradients.

Windows slide as in a convolution. The gradient of a maximum goes to its first element, row by row. NaN propagates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from app.errors import DtypeError, OperatorError, ShapeError
from app.ops.definition import operator
from app.ops.dtype import FLOATS
from app.ops.elementwise import floats
from app.ops.lowering import Pooling
from app.ops.rules import Call
from app.ops.spec import UNKNOWN, Spec
from app.ops.values import Array, Attributes, Gradients, Results, Value
from app.ops.windows import (
    Index,
    Padding,
    Pair,
    Tap,
    across,
    check_images,
    check_like,
    check_pair,
    check_windows,
    counts_of,
    padding_along,
    taps_along,
)


@dataclass(frozen=True)
class _Settings:
    """The attributes of pooling, with their defaults."""

    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    padding: Padding = ((0, 0), (0, 0))
    ceil_mode: bool = False
    exclusive: bool = True
    """Of means alone: whether padding does not count."""

    def counts(self, shape: Any) -> Any:
        """The numbers of windows on images."""
        return counts_of(shape, self.kernel, self.stride, self.padding, (1, 1), self.ceil_mode)


_OF_MEANS: Attributes = asdict(_Settings())
_SETTINGS: Attributes = {name: value for name, value in _OF_MEANS.items() if name != "exclusive"}


def _infer_pool(x: Spec, **settings: Any) -> Spec:
    pool = _Settings(**settings)
    check_images(x)
    if x.dtype not in FLOATS:
        raise DtypeError(f"expected images of a floating type, found {x.dtype}")
    check_pair("kernel", pool.kernel)
    check_windows(pool.stride, pool.padding)
    for axis, length in enumerate(pool.kernel):
        if pool.padding != "same" and max(pool.padding[axis]) >= length:
            smaller = f"padding must be less than the kernel {pool.kernel}, found {pool.padding}"
            raise ShapeError(f"{smaller}: a window would be empty")
    return Spec((*x.shape[:2], *pool.counts(x.shape)), x.dtype)


def _infer_back(y: Spec, like: Spec, **settings: Any) -> Spec:
    check_like(y, _infer_pool(like, **settings), "the pooled images")
    return Spec(like.shape, y.dtype)


def _infer_pick(values: Spec, x: Spec, **settings: Any) -> Spec:
    check_like(values, x, "the images")
    return _infer_pool(x, **settings)


class _Windows:
    """The windows of one call: their counts and their taps."""

    def __init__(self, shape: tuple[int, ...], **settings: Any):
        pool = _Settings(**settings)
        self.exclusive, self.counts = pool.exclusive, pool.counts(shape)
        self.lengths = []
        """The number of elements of each window along each axis, including padding."""
        self.along: list[list[Tap]] = []
        for a, (size, count) in enumerate(zip(shape[2:], self.counts, strict=True)):
            kernel, stride = pool.kernel[a], pool.stride[a]
            before, after = padding_along(pool.padding, a, size, kernel, stride)
            self.along.append(taps_along(size, count, kernel, stride, before))
            starts = np.arange(count) * stride - before
            self.lengths.append(np.minimum(starts + kernel, size + after) - starts)
        self.shape = (*shape[:2], *self.counts)

    def __iter__(self) -> Iterator[tuple[Index, Index]]:
        return across(*self.along)

    def numbers(self) -> Array:
        """The divisors of the means: the elements of each window or, if `exclusive`, those that are not padding."""
        if not self.exclusive:
            rows, columns = self.lengths
        else:
            rows, columns = (np.zeros(count, int) for count in self.counts)
            for numbers, taps in zip((rows, columns), self.along, strict=True):
                for windows, _ in taps:
                    numbers[windows] += 1
        return rows[:, None] * columns

    def greatest(self, x: Array) -> Array:
        """The maximum of each window."""
        y = np.full(self.shape, -np.inf, x.dtype)
        for windows, elements in self:
            np.maximum(y[windows], x[elements], out=y[windows])
        return y

    def first_greatest(self, x: Array) -> Iterator[tuple[Index, Index, Array]]:
        """Each tap, with a mask of the windows that have their first maximum there."""
        greatest, open_ones = self.greatest(x), np.ones(self.shape, bool)
        has_nan = np.isnan(greatest).any()
        for windows, elements in self:
            here = x[elements] == greatest[windows]
            if has_nan:
                here |= np.isnan(x[elements])
            here &= open_ones[windows]
            open_ones[windows] ^= here
            yield windows, elements, here


def _selected(values: Array, where: Array) -> Array:
    """The values where a mask is true, and 0 elsewhere. `np.where` takes ten times as long."""
    bits = f"i{values.itemsize}"
    return (values.view(bits) & -where.astype(bits)).view(values.dtype)


# Maximum


@operator(_infer_pool, attributes=_SETTINGS, prepare=floats, checked=True, lowering=Pooling("max"))
def max_pool2d(x: Array, **settings: Any) -> Results:
    """Maximum of each window."""
    windows = _Windows(x.shape, **settings)
    return windows.greatest(x)


@operator(_infer_back, attributes=_SETTINGS, checked=True, lowering=Pooling("scatter", takes=(0, 1)))
def max_pool2d_scatter(y: Array, x: Array, **settings: Any) -> Results:
    """Zeros in the shape of the images `x`, with `y` added where each window has its first maximum."""
    windows = _Windows(x.shape, **settings)
    out = np.zeros(x.shape, y.dtype)
    for outer, inner, here in windows.first_greatest(x):
        out[inner] += _selected(y[outer], here)
    return out


@operator(_infer_pick, attributes=_SETTINGS, checked=True)
def max_pool2d_gather(values: Array, x: Array, **settings: Any) -> Results:
    """For each window, the element of `values` at the position of the first maximum of `x`."""
    windows = _Windows(x.shape, **settings)
    out = np.zeros(windows.shape, values.dtype)
    for outer, inner, here in windows.first_greatest(x):
        np.copyto(out[outer], values[inner], where=here)
    return out


@max_pool2d.gradient
def _(x: Value, dout: Value, call: Call) -> Gradients:
    return max_pool2d_scatter(dout, x, **call.attributes)


@max_pool2d_scatter.gradient_of("y")
def _(x: Value, dout: Value, call: Call) -> Gradients:
    return max_pool2d_gather(dout, x, **call.attributes)


@max_pool2d_gather.gradient_of("values")
def _(x: Value, dout: Value, call: Call) -> Gradients:
    return max_pool2d_scatter(dout, x, **call.attributes)


# Mean


@operator(_infer_pool, attributes=_OF_MEANS, prepare=floats, checked=True)
def avg_pool2d(x: Array, **settings: Any) -> Results:
    """Mean of each window; unless `exclusive`, padding counts as zeros."""
    windows = _Windows(x.shape, **settings)
    y = np.zeros(windows.shape, x.dtype)
    for outer, inner in windows:
        y[outer] += x[inner]
    y /= windows.numbers()
    return y


@operator(_infer_back, attributes=_OF_MEANS, checked=True)
def avg_pool2d_expand(y: Array, like: Array, **settings: Any) -> Results:
    """Zeros in the shape of `like`, with an equal share of `y` added to all elements of each window."""
    windows = _Windows(like.shape, **settings)
    shares, out = (y / windows.numbers()).astype(y.dtype, copy=False), np.zeros(like.shape, y.dtype)
    for outer, inner in windows:
        out[inner] += shares[outer]
    return out


@avg_pool2d.gradient
def _(x_like: Value, dout: Value, call: Call) -> Gradients:
    return avg_pool2d_expand(dout, x_like, **call.attributes)


@avg_pool2d_expand.gradient_of("y")
def _(dout: Value, call: Call) -> Gradients:
    return avg_pool2d(dout, **call.attributes)


# In ONNX


def _known_sizes(x: Any) -> tuple[int, int]:
    if UNKNOWN in x.shape[2:]:
        raise OperatorError(f"the height and width of its images must be known, found shape {list(x.shape)}")
    height, width = x.shape[2:]
    return height, width


def _settings_in_onnx(x: Any, **settings: Any) -> dict[str, Any]:
    """ONNX's attributes for the same windows."""
    pool = _Settings(**settings)
    kernel, stride, padding = pool.kernel, pool.stride, pool.padding
    if padding == "same" or pool.ceil_mode:
        counts = pool.counts(x.shape)
        ends = []
        for a, size in enumerate(_known_sizes(x)):
            before, _ = padding_along(padding, a, size, kernel[a], stride[a])
            ends.append((before, max((int(counts[a]) - 1) * stride[a] + kernel[a] - size - before, 0)))
        padding = (ends[0], ends[1])
    pads = [pair[end] for end in (0, 1) for pair in padding]
    return {"kernel_shape": kernel, "strides": stride, "pads": pads}


@max_pool2d.in_onnx
def _(onnx: Any, x: Any, attributes: Attributes) -> Any:
    return onnx.MaxPool(x, **_settings_in_onnx(x, **attributes))


def _matrices(windows: _Windows, sizes: tuple[int, int], dtype: str) -> list[Array]:
    """Matrices [windows, rows] and [windows, columns] that are 1 where a row or a column is in a window."""
    matrices = [np.zeros((count, size), dtype) for count, size in zip(windows.counts, sizes, strict=True)]
    for matrix, taps in zip(matrices, windows.along, strict=True):
        for outer, inner in taps:
            matrix[np.arange(len(matrix))[outer], np.arange(matrix.shape[1])[inner]] = 1
    return matrices


@avg_pool2d.in_onnx
def _(onnx: Any, x: Any, attributes: Attributes) -> Any:
    if attributes["exclusive"]:
        return onnx.AveragePool(x, count_include_pad=0, **_settings_in_onnx(x, **attributes))
    sizes = _known_sizes(x)
    windows = _Windows(x.shape, **attributes)
    rows, columns = _matrices(windows, sizes, x.dtype)
    sums = onnx.MatMul(onnx.MatMul(rows, x), columns.T)
    return sums / windows.numbers().astype(x.dtype)
