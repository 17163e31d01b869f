"""Operators that rearrange values: shape, axes, joining, cutting and element type."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import DtypeError, ShapeError
from app.ops.definition import operator
from app.ops.dtype import INTEGERS
from app.ops.elementwise import to_common_type
from app.ops.form import Alias, Elementwise
from app.ops.spec import UNKNOWN, Spec, count, normal_axis, reduced_axes


def _same(x: Any) -> Any:
    return x


def _infer_cast(x: Spec, *, dtype: str) -> Spec:
    return Spec(x.shape, dtype)


@operator(_infer_cast, form=Elementwise(_same, settings=False))
def cast(x: Any, *, dtype: str) -> Any:
    """The value with another element type."""
    return x.astype(dtype)


@cast.gradient
def _(x: Any, dout: Any) -> Any:
    return cast_like(dout, x)


@operator(lambda x, like: Spec(x.shape, like.dtype), form=Elementwise(_same, takes=(0,), settings=False))
def cast_like(x: Any, like: Any) -> Any:
    """The value with the element type of another."""
    return x.astype(like.dtype)


@cast_like.gradient_of("x")
def _(x: Any, dout: Any) -> Any:
    return cast_like(dout, x)


# Shape


def _infer_reshape(x: Spec, *, shape: tuple[int, ...]) -> Spec:
    return Spec(_reshaped(x.shape, shape), x.dtype)


def _reshaped(sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with the sizes that 0 copies, and with what is left in the place of -1, as far as that is known."""
    if any(size == 0 and i >= len(sizes) for i, size in enumerate(shape)):
        raise ShapeError(f"shape {list(shape)} copies an axis (0) that the value does not have")
    if shape.count(UNKNOWN) > 1:
        raise ShapeError(f"shape {list(shape)} leaves more than one size open")
    target = [sizes[i] if size == 0 else size for i, size in enumerate(shape)]
    if UNKNOWN in shape:
        # sizes that are copied stand on both sides, so they need not be known, and may be 0
        left = count([size for i, size in enumerate(sizes) if shape[i : i + 1] != (0,)])
        rest = count([size for size in shape if size not in (0, UNKNOWN)])
        target[shape.index(UNKNOWN)] = UNKNOWN if left == UNKNOWN else left // rest
    if UNKNOWN not in (*sizes, *target) and count(sizes) != count(target):
        raise ShapeError(f"{count(sizes)} elements do not fill shape {list(shape)}")
    return tuple(target)


@operator(_infer_reshape, form=Alias())
def reshape(x: Any, *, shape: tuple[int, ...]) -> Any:
    """The same elements in another shape: -1 stands for what is left, 0 copies the axis of the value."""
    return np.reshape(x, _reshaped(x.shape, shape))


@reshape.gradient
def _(x: Any, dout: Any) -> Any:
    return reshape_like(dout, x)


@operator(lambda x, like: Spec(like.shape, x.dtype), form=Alias())
def reshape_like(x: Any, like: Any) -> Any:
    """The same elements in the shape of another value."""
    return np.reshape(x, like.shape)


@reshape_like.gradient_of("x")
def _(x: Any, dout: Any) -> Any:
    return reshape_like(dout, x)


def _infer_flatten(x: Spec, *, start_axis: int = 0, stop_axis: int = -1) -> Spec:
    return Spec(_flattened(x.shape, start_axis, stop_axis), x.dtype)


def _flattened(sizes: tuple[int, ...], start_axis: int, stop_axis: int) -> tuple[int, ...]:
    start, stop = normal_axis(start_axis, len(sizes)), normal_axis(stop_axis, len(sizes))
    if stop < start:
        raise ShapeError(f"start_axis {start_axis} comes after stop_axis {stop_axis} in a value with {len(sizes)} axes")
    return *sizes[:start], count(sizes[start : stop + 1]), *sizes[stop + 1 :]


@operator(_infer_flatten, form=Alias())
def flatten(x: Any, *, start_axis: int = 0, stop_axis: int = -1) -> Any:
    """The axes from `start_axis` to `stop_axis` made one."""
    return np.reshape(x, _flattened(x.shape, start_axis, stop_axis))


def _infer_squeeze(x: Spec, *, axis: Any = None) -> Spec:
    for a in reduced_axes(axis, len(x.shape)):
        if x.shape[a] == UNKNOWN:
            raise ShapeError(f"axis {a} has an unknown size, so it is not known whether it goes; list axes of size 1")
    axes = _squeezed(x.shape, axis)
    return Spec(tuple(size for i, size in enumerate(x.shape) if i not in axes), x.dtype)


def _squeezed(shape: tuple[int, ...], axis: Any) -> set[int]:
    return {a for a in reduced_axes(axis, len(shape)) if shape[a] == 1}


@operator(_infer_squeeze, form=Alias())
def squeeze(x: Any, *, axis: Any = None) -> Any:
    """The value without axes of size 1: all of them, or those listed."""
    axes = _squeezed(x.shape, axis)
    return np.reshape(x, tuple(size for i, size in enumerate(x.shape) if i not in axes))


def _unsqueezed(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    sizes = list(shape)
    for a in (axis,) if isinstance(axis, int) else axis:
        sizes.insert(normal_axis(a, len(sizes) + 1), 1)
    return tuple(sizes)


@operator(lambda x, *, axis: Spec(_unsqueezed(x.shape, axis), x.dtype), form=Alias())
def unsqueeze(x: Any, *, axis: Any) -> Any:
    """The value with new axes of size 1."""
    return np.reshape(x, _unsqueezed(x.shape, axis))


@flatten.gradient
@squeeze.gradient
@unsqueeze.gradient
def _(x: Any, dout: Any) -> Any:
    return reshape_like(dout, x)


# Axes


def _infer_transpose(x: Spec, *, perm: Any = None) -> Spec:
    order = _order(perm, len(x.shape))
    return Spec(tuple(x.shape[i] for i in order), x.dtype)


def _order(perm: Any, rank: int) -> tuple[int, ...]:
    order = tuple(range(rank))[::-1] if perm is None else tuple(normal_axis(a, rank) for a in perm)
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"perm {list(perm)} is no order of {rank} axes")
    return order


@operator(_infer_transpose)
def transpose(x: Any, *, perm: Any = None) -> Any:
    """The value with its axes in another order; without one, reversed."""
    return np.transpose(x, _order(perm, x.ndim))


@transpose.gradient
def _(dout: Any, perm: Any) -> Any:
    if perm is None:
        return transpose(dout)
    return transpose(dout, perm=tuple(int(i) for i in np.argsort(_order(perm, len(perm)))))


# Joining and cutting


def _infer_concat(*x: Spec, axis: int = 0) -> Spec:
    if not x:
        raise ShapeError("there is nothing to join")
    if len({s.dtype for s in x}) > 1:
        raise DtypeError(f"expected one element type, found {', '.join(s.dtype for s in x)}")
    along = _cut_axis(axis, len(x[0].shape))
    if len({len(s.shape) for s in x}) > 1 or len({(*s.shape[:along], *s.shape[along + 1 :]) for s in _known(x)}) > 1:
        raise ShapeError(f"the shapes differ outside axis {axis}")
    sizes = [s.shape[along] for s in x]
    total = UNKNOWN if UNKNOWN in sizes else sum(sizes)
    return Spec((*x[0].shape[:along], total, *x[0].shape[along + 1 :]), x[0].dtype)


def _cut_axis(axis: int, rank: int) -> int:
    """The axis along which values are joined or cut."""
    if not rank:
        raise ShapeError("a value without axes cannot be joined or cut")
    return normal_axis(axis, rank)


def _known(specs: tuple[Spec, ...]) -> list[Spec]:
    """The Specs with each unknown size replaced by a size known from another, so that they can be compared."""
    columns = list(zip(*(s.shape for s in specs), strict=True))
    best = [max(column) for column in columns]
    return [Spec(tuple(b if n == UNKNOWN else n for n, b in zip(s.shape, best, strict=True)), s.dtype) for s in specs]


@operator(_infer_concat, prepare=lambda values: to_common_type(values) if values else values)
def concat(*x: Any, axis: int = 0) -> Any:
    """Values joined along an axis."""
    return np.concatenate(x, axis)


@concat.gradient
def _(x: Any, dout: Any, axis: int) -> Any:
    return split_like(dout, x, axis)


def split_like(value: Any, parts: list[Any], axis: int) -> list[Any]:
    """Cut a value into pieces as long as `parts` are along an axis."""
    sizes = [part.shape[axis] for part in parts]
    if sizes.count(UNKNOWN) > 1:
        raise ShapeError("values with more than one unknown size along the axis that joins them have no gradient")
    return list(split(value, num_or_sections=tuple(int(s) for s in sizes), axis=axis))


def _sections(size: int, num_or_sections: Any, axis: int) -> list[int]:
    if isinstance(num_or_sections, int):
        if size == UNKNOWN:
            return [UNKNOWN] * num_or_sections
        if num_or_sections < 1 or size % num_or_sections:
            raise ShapeError(f"axis {axis} of size {size} cannot be cut into {num_or_sections} equal parts")
        return [size // num_or_sections] * num_or_sections
    sizes = list(num_or_sections)
    if UNKNOWN in sizes and size != UNKNOWN:
        sizes[sizes.index(UNKNOWN)] = size - sum(s for s in sizes if s != UNKNOWN)
    if size != UNKNOWN and (sum(sizes) != size or min(sizes, default=0) < 0):
        raise ShapeError(f"axis {axis} of size {size} cannot be cut into parts of {list(num_or_sections)}")
    return sizes


def _infer_split(x: Spec, *, num_or_sections: Any, axis: int = 0) -> tuple[Spec, ...]:
    along = _cut_axis(axis, len(x.shape))
    sizes = _sections(x.shape[along], num_or_sections, axis)
    return tuple(Spec((*x.shape[:along], size, *x.shape[along + 1 :]), x.dtype) for size in sizes)


@operator(_infer_split, many_outputs=True)
def split(x: Any, *, num_or_sections: Any, axis: int = 0) -> Any:
    """The value cut along an axis, into a number of equal parts or into parts of the sizes listed."""
    along = _cut_axis(axis, x.ndim)
    sizes = _sections(x.shape[along], num_or_sections, axis)
    return tuple(np.split(x, np.cumsum(sizes[:-1]), along))


@split.gradient
def _(douts: Any, axis: int) -> Any:
    return concat(list(douts), axis=axis)


def stack(x: Any, axis: int = 0) -> Any:
    """Values of one shape joined along a new axis."""
    return concat([unsqueeze(v, axis=axis) for v in x], axis=axis)


# Indexing


def _index(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index that the plain attribute of `getitem` stands for: ("slice", a, b, c), a number, None or "..."."""
    return tuple(slice(*i[1:]) if isinstance(i, tuple) else Ellipsis if i == "..." else i for i in items)


def plain_index(index: Any) -> tuple[Any, ...]:
    """A Python index as the plain data that a `getitem` operator carries."""
    items = index if isinstance(index, tuple) else (index,)
    return tuple(
        ("slice", i.start, i.stop, i.step) if isinstance(i, slice) else "..." if i is Ellipsis else i for i in items
    )


def _infer_getitem(x: Spec, *, index: tuple[Any, ...]) -> Spec:
    items = _index(index)
    value = np.broadcast_to(False, [_ANY_SIZE if size == UNKNOWN else size for size in x.shape])
    uncut = value[tuple(slice(None) if isinstance(i, slice) else i for i in items)]
    sizes = zip(value[items].shape, uncut.shape, strict=True)
    return Spec(tuple(UNKNOWN if full == _ANY_SIZE else size for size, full in sizes), x.dtype)


_ANY_SIZE = 1_000_003
"""Stands for an unknown size: in the uncut value it shows which axes of a part have one."""


@operator(_infer_getitem)
def getitem(x: Any, *, index: tuple[Any, ...]) -> Any:
    """A part of the value, by numbers and slices."""
    return x[_index(index)]


@getitem.gradient
def _(x: Any, dout: Any, index: tuple[Any, ...]) -> Any:
    return place(dout, x, index=index)


@operator(lambda y, like, *, index: Spec(like.shape, y.dtype))
def place(y: Any, like: Any, *, index: tuple[Any, ...]) -> Any:
    """Zeros in the shape of `like`, with `y` in the part that the index names."""
    out = np.zeros(like.shape, y.dtype)
    out[_index(index)] = y
    return out


@place.gradient_of("y")
def _(dout: Any, index: tuple[Any, ...]) -> Any:
    return getitem(dout, index=index)


def _infer_gather(x: Spec, index: Spec, *, axis: int = 0) -> Spec:
    if index.dtype not in INTEGERS:
        raise DtypeError(f"an index must be of whole numbers, found {index.dtype}")
    along = normal_axis(axis, len(x.shape))
    return Spec((*x.shape[:along], *index.shape, *x.shape[along + 1 :]), x.dtype)


@operator(_infer_gather, checked=True)
def gather(x: Any, index: Any, *, axis: int = 0) -> Any:
    """The rows, or slices along another axis, that an array of whole numbers names."""
    return np.take(x, index, axis)


@gather.gradient_of("x")
def _(x: Any, index: Any, dout: Any, axis: int) -> Any:
    return scatter_add(dout, index, x, axis=axis)


@operator(lambda y, index, like, *, axis=0: Spec(like.shape, y.dtype))
def scatter_add(y: Any, index: Any, like: Any, *, axis: int = 0) -> Any:
    """Zeros in the shape of `like`, to whose slices named by `index` those of `y` are added."""
    out = np.zeros(like.shape, y.dtype)
    np.add.at(out, (*[slice(None)] * normal_axis(axis, out.ndim), index), y)
    return out


@scatter_add.gradient_of("y")
def _(index: Any, dout: Any, axis: int) -> Any:
    return gather(dout, index, axis=axis)
