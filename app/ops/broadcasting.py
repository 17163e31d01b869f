"""Explicit broadcasting, and its transpose: sums over broadcast axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from app.errors import ShapeError
from app.ops.definition import REGISTRY, operator
from app.ops.lowering import Elementwise, Reduction
from app.ops.public import public
from app.ops.size import AnySize, Shape
from app.ops.spec import UNKNOWN, Spec, broadcast, plain_sizes
from app.ops.values import Applied, Array, Element, Gradients, Results, Value


def _infer_sum_to(x: Spec, *, shape: tuple[int, ...]) -> Spec:
    broadcast(x.shape, shape)
    return Spec(shape, x.dtype)


def _sum_to(x: Array, shape: tuple[int, ...]) -> Array:
    if x.shape == shape:
        return x
    if x.ndim == 2 and shape == x.shape[1:] and x.dtype.char in "fd":  # such as the gradient of a bias; BLAS is faster
        columns: Array = np.ones(len(x), x.dtype) @ x
        return columns
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(extra + i for i, size in enumerate(shape) if size == 1)
    total: Array = np.sum(x, axis=axes, dtype=x.dtype).reshape(shape)
    return total


def _axes_to(x: Sequence[AnySize], shape: Sequence[AnySize]) -> list[int]:
    """The axes to sum over from the shape `x` to `shape`."""
    extra = len(x) - len(shape)
    return [*range(extra), *(extra + i for i, size in enumerate(shape) if size == 1)]


@operator(
    _infer_sum_to,
    lowering=Reduction(lambda attributes, shapes: _axes_to(shapes[0], attributes["shape"]), lambda dtype: 0),
)
def sum_to(x: Array, *, shape: tuple[int, ...]) -> Results:
    """Sum over the axes along which `shape` broadcasts to the shape of `x`."""
    return _sum_to(x, shape)


@operator(
    lambda x, like: Spec(like.shape, x.dtype),
    lowering=Reduction(lambda attributes, shapes: _axes_to(*shapes), lambda dtype: 0),
)
def sum_like(x: Array, like: Array) -> Results:
    """Sum over the axes along which `like` broadcasts to the shape of `x`; the shape of `like` may be unknown."""
    return _sum_to(x, like.shape)


@sum_to.gradient
@sum_like.gradient_of("x")
def _(x_like: Value, dout: Value) -> Gradients:
    return expand_as(dout, x_like)


def _same(x: Element) -> Element:
    return x


def _infer_expand(x: Spec, *, shape: tuple[int, ...]) -> Spec:
    sizes = _expanded(x.shape, shape)
    pairs = zip(reversed(x.shape), reversed(sizes), strict=False)
    if {old for old, new in pairs if old != new} - {1, UNKNOWN}:
        raise ShapeError(f"a value of shape {list(x.shape)} cannot be expanded to {list(shape)}")
    return Spec(sizes, x.dtype)


def _expanded(sizes: Shape, shape: Shape) -> Shape:
    """`shape` with -1 replaced by the size of the axis."""
    extra = len(shape) - len(sizes)
    if extra < 0:
        raise ShapeError(f"shape {list(shape)} has fewer axes than the value")
    if -1 in shape[:extra]:
        raise ShapeError(f"shape {list(shape)} keeps an axis (-1) that the value does not have")
    return tuple(sizes[i - extra] if size == -1 else size for i, size in enumerate(shape))


@public("broadcast_to", method=True)
@operator(
    _infer_expand,
    lowering=Elementwise(_same, settings=False),
    views=True,
    gradient=lambda x_like, dout: sum_like(dout, x_like),
    onnx=lambda onnx, x, shape: onnx.Expand(x, [1 if size == UNKNOWN else size for size in shape]),
)
def expand(x: Array, *, shape: tuple[int, ...]) -> Results:
    """Broadcast to a shape; -1 keeps the size of an axis."""
    return np.broadcast_to(x, [int(size) for size in _expanded(x.shape, shape)])


def _infer_expand_as(x: Spec, y: Spec) -> Spec:
    if len(x.shape) > len(y.shape):
        raise ShapeError(f"a value of shape {list(x.shape)} cannot be expanded to {list(y.shape)}")
    broadcast(x.shape, y.shape)
    return Spec(y.shape, x.dtype)


@public(method=True)
@operator(
    _infer_expand_as,
    lowering=Elementwise(_same, takes=(0,), settings=False),
    views=True,
    onnx=lambda onnx, x, y: onnx.Expand(x, onnx.Shape(y)),
)
def expand_as(x: Array, y: Array) -> Results:
    """Broadcast `x` to the shape of `y`."""
    return np.broadcast_to(x, y.shape)


@expand_as.gradient_of("x")
def _(x_like: Value, dout: Value) -> Gradients:
    return sum_like(dout, x_like)


@public()
def broadcast_tensors(input: Sequence[Value]) -> list[Applied]:
    """Broadcast values to their common shape."""
    shape = broadcast(*(plain_sizes(value.shape) for value in input))
    if UNKNOWN not in shape:
        return [expand(value, shape) for value in input]
    zeros = (REGISTRY["full_like"](value, fill_value=0, dtype="int32") for value in input)
    whole = reduce(REGISTRY["add"], zeros)  # its shape at run time is the common shape
    return [expand_as(value, whole) for value in input]
