"""Functions that rearrange elements: shape, axes, joining, cutting, choosing."""

from __future__ import annotations

import builtins
from functools import wraps
from typing import Any

import numpy as np

import app
from app.compat.torch._grad_fn import called
from app.compat.torch._pointwise import as_element, factor
from app.compat.torch._size import Size, along, sizes
from app.compat.torch._table import FUNCTIONS, METHODS, register, rows
from app.errors import ShapeError
from app.ops.gathering import from_start
from app.ops.spec import normal_axis

rows(
    """
    argwhere = nonzero(input)
    broadcast_to = broadcast_to(input, size:shape)
    diag = diag(input, diagonal:offset)
    flatten = flatten(input, start_dim:start_axis, end_dim:stop_axis)
    masked_select = masked_select(input, mask)
    moveaxis movedim = moveaxis(input, source, destination)
    ravel = flatten(input)
    repeat_interleave = repeat_interleave(input, repeats, dim:axis)
    roll = roll(input, shifts, dims:axis)
    squeeze = squeeze(input, dim:axis)
    take = take(input, index)
    take_along_dim = take_along_axis(input, indices:index, dim:axis)
    tril = tril(input, diagonal)
    triu = triu(input, diagonal)
    unflatten = unflatten(input, dim:axis, sizes:shape)
    unsqueeze = unsqueeze(input, dim:axis)
    """
)


def _from_start(function: Any) -> Any:
    """The function with its indices checked: PyTorch counts none from the end but those of `x[index]`, take and put."""

    @wraps(function)
    def checked(input: Any, dim: int, index: Any, *args: Any, **settings: Any) -> Any:
        return function(input, dim, from_start(index if index.ndim else index.reshape(1)), *args, **settings)

    return checked


rows(
    """
    gather = take_along_axis(input, dim:axis, index, :broadcast=False)
    index_select = index_select(input, dim:axis, index)
    """,
    check=_from_start,
)

rows(
    "scatter_add = put_along_axis(input, dim:axis, index:indices, src:values, :reduce='add', :broadcast=False)",
    check=_from_start,
    in_place=True,
)


@register()
def reshape(input: Any, *shape: Any) -> Any:
    """The same elements in another shape."""
    target = sizes(shape)
    if 0 in target:  # 0 is a size here; the framework's reshape would copy a size
        return _to_empty(input, target)
    return app.reshape(input, shape=target)


def _to_empty(input: Any, target: tuple[int, ...]) -> Any:
    shape = np.empty(input.shape, bool).reshape(target).shape
    return app.view_as(input, app.zeros(list(shape)))


@register(function=False)
def view(self: Any, *shape: Any) -> Any:
    """The same elements, in the same memory, in another shape."""
    result = reshape(self, *shape)
    if hasattr(self, "_array") and self._array.size and not np.may_share_memory(self._array, result._array):
        raise ShapeError(
            f"view: a Tensor whose elements are not in row-major order in memory, of shape {list(self.shape)}, has no "
            f"view of shape {list(result.shape)}; use reshape, which copies it"
        )
    return result


@register()
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal along two axes, as the last one of the result; that of a matrix in row-major order is a view."""
    if input.ndim != 2 or (dim1 % 2, dim2 % 2) != (0, 1) or -1 in input.shape or not input.is_contiguous():
        return app.diagonal(input, offset, dim1, dim2)
    rows, columns = input.shape
    first = offset if offset >= 0 else -offset * columns
    length = min(rows + min(offset, 0), columns - max(offset, 0))
    return input.reshape(-1)[first : first + max(length, 0) * (columns + 1) : columns + 1]


@register()
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not 0: one row for each or, with `as_tuple`, one Tensor for each axis."""
    return app.nonzero(input if input.ndim or not as_tuple else input.reshape(1), as_tuple=as_tuple)


@register()
def permute(input: Any, *dims: Any) -> Any:
    """The value with its axes in another order."""
    return app.transpose(input, perm=sizes(dims))


@register("swapaxes", "swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """The value with two axes exchanged."""
    order = list(range(input.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return app.transpose(input, perm=order)


def _of_itself(name: str) -> Any:
    def method(self: Any, *args: Any, **settings: Any) -> Any:
        return self.change_shape(lambda value: METHODS[name](value, *args, **settings))

    return method


for _name in ("squeeze", "swapaxes", "t", "transpose", "unsqueeze"):
    METHODS[f"{_name}_"] = _of_itself(_name)


@register()
def t(input: Any) -> Any:
    """The matrix with its two axes exchanged; a vector is left as it is."""
    if input.ndim > 2:
        raise ShapeError(f"t() takes a matrix or a vector, found a Tensor with {input.ndim} axes; use transpose")
    return called("T", app.transpose(input))


@register(function=False)
def expand(input: Any, *shape: Any) -> Any:
    """The value repeated along axes of size 1; -1 keeps a size."""
    target = list(sizes(shape))
    own = [1] * (len(target) - input.ndim) + list(input.shape)
    return app.broadcast_to(input, [o if s == -1 else s for s, o in zip(target, own, strict=True)])


@register(function=False)
def repeat(input: Any, *repeats: Any) -> Any:
    """The value repeated along each axis."""
    times = sizes(repeats)
    if len(times) < input.ndim:
        raise ShapeError(f"repeat: expected a number for each of {input.ndim} axes, found {list(times)}; use tile")
    return app.tile(input, times)


@register()
def tile(input: Any, *dims: Any) -> Any:
    """The value repeated along each axis."""
    return app.tile(input, sizes(dims))


@register()
def flip(input: Any, *dims: Any) -> Any:
    """The value reversed along axes."""
    return app.flip(input, sizes(dims))


@register()
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """A part of an axis."""
    size = input.shape[normal_axis(dim, input.ndim)]
    first = start + size if start < 0 <= size else start
    if length < 0 or first < 0 or 0 <= size < first + length:
        raise ShapeError(f"narrow: {length} elements from {start} on are not in an axis of size {size}")
    return input[along(input, dim, slice(first, first + length))]


@register()
def select(input: Any, dim: int, index: int) -> Any:
    """The value at an index of an axis, without the axis."""
    return input[along(input, dim, index)]


# Joining and cutting


def _joined(tensors: Any) -> list[Any]:
    return list(tensors)


FUNCTIONS.update(
    cat=lambda tensors, dim=0, *, axis=None: app.concat(_joined(tensors), axis=dim if axis is None else axis),
    stack=lambda tensors, dim=0: app.stack(_joined(tensors), dim),
    hstack=lambda tensors: app.hstack(_joined(tensors)),
    vstack=lambda tensors: app.vstack(_joined(tensors)),
    row_stack=lambda tensors: app.vstack(_joined(tensors)),
    broadcast_tensors=lambda *tensors: tuple(app.broadcast_tensors(list(tensors))),
    broadcast_shapes=lambda *shapes: Size(np.broadcast_shapes(*shapes)),
    meshgrid=lambda *tensors, indexing="ij": tuple(app.meshgrid(*tensors, indexing=indexing)),
)
FUNCTIONS["concat"] = FUNCTIONS["concatenate"] = FUNCTIONS["cat"]


@register()
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Parts along an axis: of one size, with a smaller last one, or of the listed sizes."""
    size = tensor.shape[dim]
    sections = split_size_or_sections
    if isinstance(sections, int):
        rest = size % sections
        sections = [sections] * (size // sections) + [rest] * builtins.bool(rest)
    return tuple(app.split(tensor, num_or_sections=list(sections), axis=dim))


@register()
def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """Split an axis into `chunks` parts; fewer if its size cannot be divided into that many."""
    return split(input, -(-input.shape[dim] // chunks), dim)


@register()
def unbind(input: Any, dim: int = 0) -> Any:
    """The values along an axis as a tuple."""
    return tuple(app.unbind(input, dim))


# Choosing


@register(in_place=True)
@_from_start
def scatter(input: Any, dim: int, index: Any, src: Any = None, value: Any = None, *, reduce: Any = None) -> Any:
    """A copy with `src` stored at `index` along an axis."""
    put = value if src is None else src
    put = put if hasattr(put, "dtype") else as_element(put, input)
    way = {None: "assign", "add": "add", "multiply": "mul"}[reduce]
    return app.put_along_axis(input, index, put, dim, way, broadcast=False)


@register(in_place=True)
@_from_start
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    """A copy with slices of `source` added at the indices `index` of an axis."""
    return app.index_add(input, index, dim, source if alpha == 1 else source * factor(alpha, source))
