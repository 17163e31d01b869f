"""Concatenating, splitting, padding, flipping and rolling values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from app.errors import DtypeError, ShapeError
from app.ops.definition import operator
from app.ops.elementwise import to_common_type
from app.ops.public import public
from app.ops.shaping import reshape, squeeze, unsqueeze
from app.ops.size import AnySize
from app.ops.spec import UNKNOWN, Axis, Spec, normal_axis, plain_sizes, reduced_axes
from app.ops.values import Applied, Array, Gradient, Gradients, OnnxNodes, OnnxResult, OnnxValue, Results, Value


def _infer_concat(*x: Spec, axis: int = 0) -> Spec:
    if not x:
        raise ShapeError("expected at least one value to concatenate")
    if len({s.dtype for s in x}) > 1:
        raise DtypeError(f"expected one element type, found {', '.join(s.dtype for s in x)}")
    along = _checked_axis(axis, len(x[0].shape))
    if len({len(s.shape) for s in x}) > 1 or len({(*s.shape[:along], *s.shape[along + 1 :]) for s in _known(x)}) > 1:
        raise ShapeError(f"the shapes differ outside axis {axis}")
    sizes = [s.shape[along] for s in x]
    total = UNKNOWN if UNKNOWN in sizes else sum(sizes)
    return Spec((*x[0].shape[:along], total, *x[0].shape[along + 1 :]), x[0].dtype)


def _checked_axis(axis: int, rank: int) -> int:
    """The axis along which values are concatenated or split, as a non-negative number."""
    if not rank:
        raise ShapeError("a scalar cannot be concatenated or split")
    return normal_axis(axis, rank)


def _known(specs: tuple[Spec, ...]) -> list[Spec]:
    """The Specs with unknown sizes replaced by known sizes of the other Specs, for comparison."""
    columns = list(zip(*(s.shape for s in specs), strict=True))
    best = [next((size for size in column if size != UNKNOWN), UNKNOWN) for column in columns]
    return [Spec(tuple(b if n == UNKNOWN else n for n, b in zip(s.shape, best, strict=True)), s.dtype) for s in specs]


@public()
@operator(_infer_concat, prepare=lambda values: to_common_type(values) if values else values)
def concat(*x: Array, axis: int = 0) -> Results:
    """Concatenate values along an existing axis."""
    return np.concatenate(x, axis)


@concat.gradient
def _(x_like: Sequence[Value], dout: Value, axis: int) -> Gradients:
    sizes = tuple(plain_sizes(part.shape)[axis] for part in x_like)
    if sizes.count(UNKNOWN) > 1:
        return split_like([dout, *x_like], axis=axis)
    return split(dout, num_or_sections=sizes, axis=axis)


@concat.in_onnx
def _(onnx: OnnxNodes, x: Sequence[OnnxValue], axis: int) -> OnnxResult:
    return onnx.Concat(*x, axis=axis)


def _infer_split_like(*values: Spec, axis: int = 0) -> tuple[Spec, ...]:
    return tuple(Spec(part.shape, values[0].dtype) for part in values[1:])


@operator(_infer_split_like, many_outputs=True)
def split_like(*values: Array, axis: int = 0) -> Results:
    """Split the first value along an axis into parts with the lengths of the other values."""
    return tuple(np.split(values[0], np.cumsum([part.shape[axis] for part in values[1:-1]], dtype=int), axis))


@split_like.gradient
def _(needs: Sequence[bool], douts: Sequence[Gradient], axis: int) -> Gradients:
    return [concat(list(douts), axis=axis), *[None] * (len(needs) - 1)]


@split_like.in_onnx
def _(onnx: OnnxNodes, values: Sequence[OnnxValue], axis: int) -> OnnxResult:
    sizes = onnx.listed(*(onnx.length(part, axis) for part in values[1:]))
    return onnx.Split(values[0], sizes, axis=axis, outputs=len(values) - 1)


def _sections(size: AnySize, num_or_sections: int | Sequence[int], axis: int) -> list[AnySize]:
    if isinstance(num_or_sections, int):
        if size == UNKNOWN:
            return [UNKNOWN] * num_or_sections
        if num_or_sections < 1 or size % num_or_sections:
            raise ShapeError(f"axis {axis} of size {size} cannot be split into {num_or_sections} equal parts")
        return [size // num_or_sections] * num_or_sections
    sizes: list[AnySize] = list(num_or_sections)
    if UNKNOWN in sizes and size != UNKNOWN:
        sizes[sizes.index(UNKNOWN)] = size - sum(s for s in sizes if s != UNKNOWN)
    if size != UNKNOWN and (sum(sizes) != size or min(sizes, default=0) < 0):
        raise ShapeError(f"axis {axis} of size {size} cannot be split into parts of {list(num_or_sections)}")
    return sizes


def _infer_split(x: Spec, *, num_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Spec, ...]:
    along = _checked_axis(axis, len(x.shape))
    sizes = _sections(x.shape[along], num_or_sections, axis)
    return tuple(Spec((*x.shape[:along], size, *x.shape[along + 1 :]), x.dtype) for size in sizes)


@public(method=True)
@operator(_infer_split, many_outputs=True, views=True)
def split(x: Array, *, num_or_sections: int | Sequence[int], axis: int = 0) -> Results:
    """Split a value along an axis into a number of equal parts, or into parts of given sizes."""
    along = _checked_axis(axis, x.ndim)
    sizes = [int(size) for size in _sections(x.shape[along], num_or_sections, axis)]
    return tuple(np.split(x, np.cumsum(sizes[:-1]), along))


@split.gradient
def _(douts: Sequence[Gradient], axis: int) -> Gradients:
    return concat(list(douts), axis=axis)


@split.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, num_or_sections: int | Sequence[int], axis: int) -> OnnxResult:
    sizes = _sections(x.shape[axis], num_or_sections, axis)
    if UNKNOWN not in sizes:
        return onnx.Split(x, sizes, axis=axis, outputs=len(sizes))
    if sizes.count(UNKNOWN) > 1:
        each = onnx.Expand(onnx.length(x, axis) / len(sizes), [len(sizes)])
        return onnx.Split(x, each, axis=axis, outputs=len(sizes))
    rest = onnx.length(x, axis) - (sum(sizes) - UNKNOWN)
    section_sizes = onnx.listed(*(rest if size == UNKNOWN else [size] for size in sizes))
    return onnx.Split(x, section_sizes, axis=axis, outputs=len(sizes))


@public()
def stack(x: Iterable[Value], axis: int = 0, name: str | None = None) -> Applied:
    """Stack values of one shape along a new axis."""
    return concat([unsqueeze(v, axis=axis) for v in x], axis=axis)


@public()
def hstack(x: Iterable[Value], name: str | None = None) -> Applied:
    """Concatenate values horizontally: along the second axis, or along the first if they have only one."""
    values = [reshape(v, [1]) if not v.shape else v for v in x]
    return concat(values, axis=min(len(values[0].shape) - 1, 1))


@public()
def vstack(x: Iterable[Value], name: str | None = None) -> Applied:
    """Concatenate values vertically, along the first axis; vectors become rows."""
    return concat([reshape(v, [1, -1]) if len(v.shape) < 2 else v for v in x], axis=0)


def _at_least(x: Value, axes: int) -> Applied:
    """Insert axes of size 1, in the positions that NumPy's `atleast_1d`, `atleast_2d` and `atleast_3d` use."""
    rank = len(x.shape)
    if rank >= axes:
        return x
    if rank == 2:
        return reshape(x, [*x.shape, 1])
    before = [1] * min(axes - rank, 1 if rank else axes)
    return reshape(x, [*before, *x.shape, *[1] * (axes - rank - len(before))])


def _of_each(inputs: Sequence[Value], axes: int) -> Applied:
    found = [_at_least(x, axes) for x in inputs]
    return found[0] if len(found) == 1 else found


@public()
def atleast_1d(*inputs: Value, name: str | None = None) -> Applied:
    """Values with at least one axis; axes of size 1 are inserted."""
    return _of_each(inputs, 1)


@public()
def atleast_2d(*inputs: Value, name: str | None = None) -> Applied:
    """Values with at least two axes; axes of size 1 are inserted."""
    return _of_each(inputs, 2)


@public()
def atleast_3d(*inputs: Value, name: str | None = None) -> Applied:
    """Values with at least three axes; axes of size 1 are inserted."""
    return _of_each(inputs, 3)


@public()
def dstack(x: Iterable[Value], name: str | None = None) -> Applied:
    """Concatenate values along the third axis."""
    return concat([_at_least(v, 3) for v in x], axis=2)


@public()
def column_stack(x: Iterable[Value], name: str | None = None) -> Applied:
    """Concatenate values along the second axis; vectors become columns."""
    return concat([v if len(v.shape) > 1 else reshape(v, [-1, 1]) for v in x], axis=1)


@public(method=True)
def tensor_split(
    x: Value, num_or_indices: int | Sequence[int], axis: int = 0, name: str | None = None
) -> list[Applied]:
    """Split a value into a number of parts, of which the first may be larger by one, or at given indices."""
    size = x.shape[axis]
    if isinstance(num_or_indices, int):
        smaller, larger = divmod(size, num_or_indices)
        lengths = [smaller + 1] * larger + [smaller] * (num_or_indices - larger)
        ends = [sum(lengths[:i]) for i in range(1, num_or_indices)]
    else:
        ends = list(num_or_indices)
    index: list[slice] = [slice(None)] * len(x.shape)
    parts = []
    for start, end in zip([None, *ends], [*ends, None], strict=True):
        index[axis] = slice(start, end)
        parts.append(x[tuple(index)])
    return parts


@public(method=True)
def hsplit(x: Value, num_or_indices: int | Sequence[int], name: str | None = None) -> list[Applied]:
    """Split a value along its second axis, or along the first if it has only one."""
    return tensor_split(x, num_or_indices, 1 if len(x.shape) > 1 else 0)


@public(method=True)
def vsplit(x: Value, num_or_indices: int | Sequence[int], name: str | None = None) -> list[Applied]:
    """Split a value along its first axis."""
    return tensor_split(x, num_or_indices, 0)


@public(method=True)
def dsplit(x: Value, num_or_indices: int | Sequence[int], name: str | None = None) -> list[Applied]:
    """Split a value along its third axis."""
    return tensor_split(x, num_or_indices, 2)


@public(method=True)
def chunk(x: Value, chunks: int, axis: int = 0, name: str | None = None) -> Applied:
    """Split a value along an axis into a number of parts, of which the last may be smaller."""
    size = x.shape[_checked_axis(axis, len(x.shape))]
    if size == UNKNOWN or size % chunks == 0:
        return split(x, num_or_sections=chunks, axis=axis)
    length = -(-size // chunks)
    return split(x, num_or_sections=[min(length, size - start) for start in range(0, size, length)], axis=axis)


@public("unbind", method=True)
def unstack(x: Value, axis: int = 0, num: int | None = None) -> list[Applied]:
    """Split a value into slices along an axis, and remove this axis."""
    size = x.shape[_checked_axis(axis, len(x.shape))]
    parts = num if size == UNKNOWN else size
    if parts is None:
        raise ShapeError(f"unstack: axis {axis} has an unknown size; give the number of slices as num=")
    return [squeeze(part, axis=axis) for part in split(x, num_or_sections=parts, axis=axis)] if parts else []


Widths = Sequence[tuple[int, int]]
"""For each axis the widths before and after it."""


def _infer_pad(x: Spec, *, widths: Widths, value: float = 0.0) -> Spec:
    if len(widths) != len(x.shape):
        raise ShapeError(f"expected two widths for each of {len(x.shape)} axes, found {list(widths)}")
    sizes = [
        UNKNOWN if n == UNKNOWN else n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)
    ]
    return Spec(tuple(sizes), x.dtype)


@operator(_infer_pad, checked=True)
def bordered(x: Array, *, widths: Widths, value: float = 0.0) -> Results:
    """Pad a value with a constant; `widths` has the widths before and after each axis."""
    return np.pad(x, widths, constant_values=value) if widths else np.copy(x)


@bordered.gradient
def _(dout: Value, widths: Widths) -> Gradients:
    return dout[tuple(slice(before, -after or None) for before, after in widths)]


@bordered.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, widths: Widths, value: float) -> OnnxResult:
    if not widths:
        return x
    return onnx.Pad(x, [w[0] for w in widths] + [w[1] for w in widths], np.asarray(value).astype(x.dtype))


# Flipping and rolling


def _infer_flip(x: Spec, *, axis: Axis) -> Spec:
    reduced_axes(axis, len(x.shape))
    return x


@public(method=True)
@operator(_infer_flip)
def flip(x: Array, *, axis: Axis) -> Results:
    """Reverse the order of elements along the given axes."""
    return np.flip(x, reduced_axes(axis, x.ndim))


@flip.gradient
def _(dout: Value, axis: Axis) -> Gradients:
    return flip(dout, axis=axis)


@flip.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, axis: Axis) -> OnnxResult:
    axes = list(reduced_axes(axis, x.rank))
    last, before_first = [np.iinfo(np.int64).max] * len(axes), [np.iinfo(np.int64).min] * len(axes)
    return onnx.Slice(x, last, before_first, axes, [-1] * len(axes)) if axes else x


def _infer_roll(x: Spec, *, shifts: int | Sequence[int], axis: Axis = None) -> Spec:
    reduced_axes(axis, len(x.shape))
    return x


@public(method=True)
@operator(_infer_roll)
def roll(x: Array, *, shifts: int | Sequence[int], axis: Axis = None) -> Results:
    """Roll elements along the given axes, or in the flattened value; those shifted out re-enter at the other end."""
    return np.roll(x, shifts, axis)


@roll.gradient
def _(dout: Value, shifts: int | Sequence[int], axis: Axis) -> Gradients:
    return roll(dout, shifts=-shifts if isinstance(shifts, int) else tuple(-n for n in shifts), axis=axis)


@roll.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, shifts: int | Sequence[int], axis: Axis) -> OnnxResult:
    whole = onnx.Shape(x)
    if axis is None:
        x, turns = onnx.Reshape(x, [-1]), [(shifts, 0)]
    else:
        axes = [normal_axis(a, x.rank) for a in ([axis] if isinstance(axis, int) else axis)]
        turns = list(zip([shifts] if isinstance(shifts, int) else shifts, axes, strict=True))
    for shift, along in turns:
        size = onnx.Shape(x, start=along, end=along + 1)
        start = size - onnx.Mod([shift], onnx.Max(size, 1))
        x = onnx.Concat(onnx.Slice(x, start, size, [along]), onnx.Slice(x, [0], start, [along]), axis=along)
    return onnx.Reshape(x, whole, allowzero=1)
