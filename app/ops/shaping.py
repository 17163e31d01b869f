"""Operators that change the element type, the shape or the order of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import ShapeError
from app.ops.definition import REGISTRY, OpDef, operator
from app.ops.lowering import Alias, Elementwise
from app.ops.public import public
from app.ops.size import Shape
from app.ops.spec import UNKNOWN, Axis, OpenSize, Spec, count, normal_axis, reduced_axes
from app.ops.values import Applied, Array, Element, Gradients, Operand, Results, Setting, Value


def _same(x: Element) -> Element:
    return x


def _infer_cast(x: Spec, *, dtype: str) -> Spec:
    return Spec(x.shape, dtype)


@public(method=True)
@operator(
    _infer_cast,
    lowering=Elementwise(_same, settings=False),
    onnx=lambda onnx, x, dtype: onnx.Cast(x, to=dtype),
)
def cast(x: Array, *, dtype: str) -> Results:
    """Cast to another element type."""
    return x.astype(dtype)


@cast.gradient
def _(x_like: Value, dout: Value) -> Gradients:
    return cast(dout, dtype=x_like.dtype)


# Shape


def _infer_reshape(x: Spec, *, shape: tuple[int, ...]) -> Spec:
    return Spec(_reshaped(x.shape, shape), x.dtype)


def _reshaped(sizes: Shape, shape: Shape) -> Shape:
    """`shape` with 0 replaced by the size of the axis, and -1 by the remaining size, as far as sizes are known."""
    if any(size == 0 and i >= len(sizes) for i, size in enumerate(shape)):
        raise ShapeError(f"shape {list(shape)} copies an axis (0) that the value does not have")
    if shape.count(UNKNOWN) > 1:
        raise ShapeError(f"shape {list(shape)} leaves more than one size open")
    target = [sizes[i] if size == 0 else size for i, size in enumerate(shape)]
    if UNKNOWN in shape:
        # copied sizes cancel, so they may be unknown or 0
        left = count([size for i, size in enumerate(sizes) if shape[i : i + 1] != (0,)])
        rest = count([size for size in shape if size not in (0, UNKNOWN)])
        target[shape.index(UNKNOWN)] = UNKNOWN if left == UNKNOWN else left // rest
    if UNKNOWN not in (*sizes, *target) and count(sizes) != count(target):
        raise ShapeError(f"{count(sizes)} elements do not fill shape {list(shape)}")
    return tuple(target)


def sizes_of(shape: Any) -> tuple[Applied, tuple[int, ...]]:
    """Split a shape that may contain values into one value with all sizes, and the known sizes (-1 for the others).

    The first result is None if all sizes are known now.
    """
    if hasattr(shape, "_array"):  # the sizes in a Tensor are known now
        shape = shape.tolist()
    if hasattr(shape, "apply_operator"):
        if len(shape.shape) != 1 or shape.shape[0] == UNKNOWN:
            raise ShapeError(f"a shape must have one axis of known length, found a value of shape {list(shape.shape)}")
        return cast(shape, dtype="int64"), (UNKNOWN,) * int(shape.shape[0])
    sizes = [shape] if not isinstance(shape, (list, tuple)) else shape
    sizes = [int(size) if hasattr(size, "_array") else size for size in sizes]
    later = [hasattr(size, "apply_operator") for size in sizes]
    if not any(later):
        return None, tuple(sizes)
    parts = [
        reshape(cast(size, dtype="int64"), [1]) if wait else np.array([size], "int64")
        for size, wait in zip(sizes, later, strict=True)
    ]
    return REGISTRY["concat"](parts, axis=0), tuple(
        UNKNOWN if wait else int(size) for size, wait in zip(sizes, later, strict=True)
    )


class TakesSizes(OpDef):
    """The class of `reshape`, whose shape may be a value, or contain values and open sizes."""

    def __call__(self, *args: Operand | Setting, **kwargs: Operand | Setting) -> Applied:
        shape = args[1] if len(args) > 1 else kwargs.get("shape")
        parts = shape if isinstance(shape, (list, tuple)) else (shape,)
        if not any(isinstance(part, OpenSize) or hasattr(part, "apply_operator") for part in parts):
            return super().__call__(*args, **kwargs)
        x = args[0] if args else kwargs["x"]
        sizes, known_sizes = sizes_of(_without_open_sizes(x, shape))
        return super().__call__(x, shape=known_sizes) if sizes is None else reshape_to(x, sizes, known=known_sizes)


def _without_open_sizes(x: Any, shape: Any) -> Any:
    """The shape with open sizes replaced.

    A single open size becomes -1, the size of the same axis of the value becomes 0, which copies it, and any other
    becomes a value, an element of `opsmith.shape`.
    """
    if not isinstance(shape, (list, tuple)):
        return shape
    if sum(size == UNKNOWN for size in map(_known_size, shape)) == 1:
        return [UNKNOWN if isinstance(size, OpenSize) else size for size in shape]
    own = [size.where if isinstance(size, OpenSize) else None for size in getattr(x, "shape", ())]
    sizes = []
    for place, size in enumerate(shape):
        if isinstance(size, OpenSize):
            name, axis = size.where
            size = 0 if own[place : place + 1] == [size.where] else REGISTRY["shape"](x.block.var(name))[axis]
        sizes.append(size)
    return sizes


def _known_size(size: Any) -> Any:
    """The size, or None for a value, whose comparison would be an operator."""
    return None if hasattr(size, "apply_operator") else size


@public(method=True)
@operator(_infer_reshape, lowering=Alias(), kind=TakesSizes)
def reshape(x: Array, *, shape: tuple[int, ...]) -> Results:
    """Reshape; -1 is the remaining size, and 0 copies the size of the axis."""
    return np.reshape(x, _reshaped(x.shape, shape))


@reshape.in_onnx
def _(onnx: Any, x: Any, shape: tuple[int, ...], out_shape: tuple[int, ...]) -> Any:
    is_known = UNKNOWN not in out_shape
    return onnx.Reshape(x, list(out_shape if is_known else shape), allowzero=is_known)


def _infer_reshape_to(x: Spec, sizes: Spec, *, known: tuple[int, ...]) -> Spec:
    return Spec(tuple(x.shape[i] if size == 0 and i < len(x.shape) else size for i, size in enumerate(known)), x.dtype)


@operator(_infer_reshape_to, onnx=lambda onnx, x, sizes, known: onnx.Reshape(x, sizes))
def reshape_to(x: Array, sizes: Array, *, known: tuple[int, ...]) -> Results:
    """Reshape to a shape given as a value; `known` has the sizes known in advance, and -1 for the others."""
    return np.reshape(x, _reshaped(x.shape, tuple(sizes.tolist())))


@operator(
    lambda x, like: Spec(like.shape, x.dtype),
    lowering=Alias(),
    onnx=lambda onnx, x, like: onnx.Reshape(x, onnx.Shape(like), allowzero=1),
)
def reshape_like(x: Array, like: Array) -> Results:
    """Reshape `x` to the shape of another value."""
    return np.reshape(x, like.shape)


def _infer_flatten(x: Spec, *, start_axis: int = 0, stop_axis: int = -1) -> Spec:
    return Spec(_flattened(x.shape, start_axis, stop_axis), x.dtype)


def _flattened(sizes: Shape, start_axis: int, stop_axis: int) -> Shape:
    start, stop = normal_axis(start_axis, len(sizes)), normal_axis(stop_axis, len(sizes))
    if stop < start:
        raise ShapeError(f"start_axis {start_axis} comes after stop_axis {stop_axis} in a value with {len(sizes)} axes")
    return *sizes[:start], count(sizes[start : stop + 1]), *sizes[stop + 1 :]


@public(method=True)
@operator(_infer_flatten, lowering=Alias())
def flatten(x: Array, *, start_axis: int = 0, stop_axis: int = -1) -> Results:
    """Flatten the axes from `start_axis` to `stop_axis` into one."""
    return np.reshape(x, _flattened(x.shape, start_axis, stop_axis))


@flatten.in_onnx
def _(onnx: Any, x: Any, start_axis: int, stop_axis: int, out_shape: tuple[int, ...]) -> Any:
    if UNKNOWN not in out_shape:
        return onnx.Reshape(x, list(out_shape), allowzero=1)
    start, stop = normal_axis(start_axis, x.rank), normal_axis(stop_axis, x.rank)
    one = onnx.ReduceProd(onnx.Shape(x, start=start, end=stop + 1), [0], keepdims=1)
    around = onnx.Shape(x, start=0, end=start), onnx.Shape(x, start=stop + 1)
    return onnx.Reshape(x, onnx.listed(around[0], one, around[1]), allowzero=1)


def _infer_squeeze(x: Spec, *, axis: Axis = None) -> Spec:
    for a in reduced_axes(axis, len(x.shape)):
        if x.shape[a] == UNKNOWN or not isinstance(x.shape[a], int):
            raise ShapeError(
                f"axis {a} has an unknown size, so whether to remove it is unknown; list the axes of size 1"
            )
    axes = _squeezed(x.shape, axis)
    return Spec(tuple(size for i, size in enumerate(x.shape) if i not in axes), x.dtype)


def _squeezed(shape: Shape, axis: Axis) -> set[int]:
    return {a for a in reduced_axes(axis, len(shape)) if shape[a] == 1}


@public(method=True)
@operator(_infer_squeeze, lowering=Alias())
def squeeze(x: Array, *, axis: Axis = None) -> Results:
    """Remove axes of size 1: all of them, or those in `axis`."""
    axes = _squeezed(x.shape, axis)
    return np.reshape(x, tuple(size for i, size in enumerate(x.shape) if i not in axes))


@squeeze.in_onnx
def _(onnx: Any, x: Any, axis: Axis) -> Any:
    axes = sorted(_squeezed(x.shape, axis))
    return onnx.Squeeze(x, axes) if axes else x


def _unsqueezed(shape: Shape, axis: int | tuple[int, ...]) -> Shape:
    sizes = list(shape)
    for a in (axis,) if isinstance(axis, int) else axis:
        sizes.insert(normal_axis(a, len(sizes) + 1), 1)
    return tuple(sizes)


@public(method=True)
@operator(lambda x, *, axis: Spec(_unsqueezed(x.shape, axis), x.dtype), lowering=Alias())
def unsqueeze(x: Array, *, axis: int | tuple[int, ...]) -> Results:
    """Insert axes of size 1."""
    return np.reshape(x, _unsqueezed(x.shape, axis))


@unsqueeze.in_onnx
def _(onnx: Any, x: Any, axis: int | tuple[int, ...]) -> Any:
    axes: list[int] = []
    for a in (axis,) if isinstance(axis, int) else axis:
        place = normal_axis(a, x.rank + len(axes) + 1)
        axes = [other + (other >= place) for other in axes] + [place]
    return onnx.Unsqueeze(x, axes)


@reshape.gradient
@reshape_to.gradient_of("x")
@reshape_like.gradient_of("x")
@flatten.gradient
@squeeze.gradient
@unsqueeze.gradient
def _(x_like: Value, dout: Value) -> Gradients:
    return reshape_like(dout, x_like)


# Axes


def _infer_transpose(x: Spec, *, perm: Sequence[int] | None = None) -> Spec:
    order = _order(perm, len(x.shape))
    return Spec(tuple(x.shape[i] for i in order), x.dtype)


def _order(perm: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    order = tuple(range(rank))[::-1] if perm is None else tuple(normal_axis(a, rank) for a in perm)
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"perm {list(perm or ())} is not a permutation of {rank} axes")
    return order


@public(method=True)
@operator(
    _infer_transpose,
    views=True,
    onnx=lambda onnx, x, perm: onnx.Transpose(x, perm=list(_order(perm, x.rank))) if x.rank else x,
)
def transpose(x: Array, *, perm: Sequence[int] | None = None) -> Results:
    """Permute axes; without `perm`, reverse them."""
    return np.transpose(x, _order(perm, x.ndim))


@transpose.gradient
def _(dout: Value, perm: Sequence[int] | None) -> Gradients:
    if perm is None:
        return transpose(dout)
    return transpose(dout, perm=tuple(int(i) for i in np.argsort(_order(perm, len(perm)))))


@public(method=True)
def t(input: Value) -> Applied:
    """Transpose of a matrix; a value with fewer axes is returned unchanged."""
    if len(input.shape) > 2:
        raise ShapeError(f"t() needs a matrix, found shape {list(input.shape)}; use transpose")
    return transpose(input) if len(input.shape) == 2 else REGISTRY["assign"](input)


@public(method=True)
def swapaxes(x: Value, axis0: int, axis1: int) -> Applied:
    """Exchange two axes."""
    order = list(range(len(x.shape)))
    first, second = normal_axis(axis0, len(order)), normal_axis(axis1, len(order))
    order[first], order[second] = second, first
    return transpose(x, perm=order)


@public(method=True)
def moveaxis(x: Value, source: int | Sequence[int], destination: int | Sequence[int]) -> Applied:
    """Move axes to other positions; the other axes keep their order."""
    numbered = np.empty(tuple(range(len(x.shape))))  # axis i has size i
    return transpose(x, perm=np.moveaxis(numbered, source, destination).shape)
