"""Concatenating and splitting values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from app.errors import DtypeError, ShapeError
from app.ops.definition import operator
from app.ops.elementwise import to_common_type
from app.ops.lowering import Joining, Splitting
from app.ops.public import public
from app.ops.shaping import unsqueeze
from app.ops.size import AnySize
from app.ops.spec import UNKNOWN, Spec, normal_axis, plain_sizes
from app.ops.values import Applied, Array, Gradients, Results, Value


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
@operator(
    _infer_concat,
    prepare=lambda values: to_common_type(values) if values else values,
    lowering=Joining(),
    onnx=lambda onnx, x, axis: onnx.Concat(*x, axis=axis),
)
def concat(*x: Array, axis: int = 0) -> Results:
    """Concatenate values along an existing axis."""
    return np.concatenate(x, axis)


@concat.gradient
def _(x_like: Sequence[Value], dout: Value, axis: int) -> Gradients:
    sizes = tuple(plain_sizes(part.shape)[axis] for part in x_like)
    if sizes.count(UNKNOWN) > 1:
        return split_like([dout, *x_like], axis=axis)
    return split(dout, num_or_sections=sizes, axis=axis)


def _infer_split_like(*values: Spec, axis: int = 0) -> tuple[Spec, ...]:
    return tuple(Spec(part.shape, values[0].dtype) for part in values[1:])


@operator(
    _infer_split_like,
    many_outputs=True,
    lowering=Splitting(),
    gradient=lambda needs, douts, axis: [concat(list(douts), axis=axis), *[None] * (len(needs) - 1)],
)
def split_like(*values: Array, axis: int = 0) -> Results:
    """Split the first value along an axis into parts with the lengths of the other values."""
    return tuple(np.split(values[0], np.cumsum([part.shape[axis] for part in values[1:-1]], dtype=int), axis))


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
@operator(
    _infer_split,
    many_outputs=True,
    views=True,
    lowering=Splitting(),
    gradient=lambda douts, axis: concat(list(douts), axis=axis),
)
def split(x: Array, *, num_or_sections: int | Sequence[int], axis: int = 0) -> Results:
    """Split a value along an axis into a number of equal parts, or into parts of given sizes."""
    along = _checked_axis(axis, x.ndim)
    sizes = [int(size) for size in _sections(x.shape[along], num_or_sections, axis)]
    return tuple(np.split(x, np.cumsum(sizes[:-1]), along))


@split.in_onnx
def _(onnx: Any, x: Any, num_or_sections: int | Sequence[int], axis: int) -> Any:
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
def stack(x: Iterable[Value], axis: int = 0) -> Applied:
    """Stack values of one shape along a new axis."""
    return concat([unsqueeze(v, axis=axis) for v in x], axis=axis)
