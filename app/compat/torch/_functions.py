"""The functions of the module `torch`, most of which are methods of Tensors too, as calls of the framework's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import app as _package
from app.compat.torch._tensor import Tensor
from app.compat.torch._types import sizes
from app.errors import ShapeError
from app.ops.indexing import along, put_items
from app.ops.spec import normal_axis

app: Any = _package  # operators are created on import, invisible to a type checker

_SAME = """
    abs acos acosh asin asinh atan atanh ceil cos cosh erf exp expm1 floor isfinite isinf isnan log log10 log1p log2
    logical_and logical_not logical_or masked_fill matmul maximum minimum neg pow reciprocal relu round rsqrt sigmoid
    sign sin sinh sqrt square tan tanh trunc
"""
SAME = frozenset(_SAME.split())
"""Operators whose parameters and rules are those of PyTorch, as functions and as methods."""
_RENAMED = "mul=multiply div=divide eq=equal ne=not_equal lt=less_than le=less_equal gt=greater_than ge=greater_equal"
_OVER_AXES = "all any amax amin argmax argmin logsumexp mean sum"
_IN_PLACE = """
    abs add ceil clamp cos div exp floor log masked_fill mul neg pow reciprocal relu round rsqrt scatter sigmoid sign
    sin sqrt square sub tan tanh
"""


class Ordered(NamedTuple):
    """Values along an axis, and their places."""

    values: Any
    indices: Any


def _binary(old: str) -> Callable[..., Any]:
    return lambda input, other: getattr(app, old)(input, other)


def _over_axes(name: str) -> Callable[..., Any]:
    return lambda input, dim=None, keepdim=False: getattr(app, name)(input, axis=dim, keepdim=keepdim)


def _prod(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The product, which is of int64 for integers, as their sum is; Paddle keeps their type."""
    return app.prod(input, axis=dim, keepdim=keepdim, dtype=None if input.is_floating_point() else "int64")


def _extreme(name: str, of_two: str) -> Callable[..., Any]:
    """The maximum or minimum; along an axis, with its places; of two Tensors, elementwise."""

    def extreme(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return getattr(app, name)(input)
        if isinstance(dim, Tensor):
            return getattr(app, of_two)(input, dim)
        places = getattr(app, f"arg{name}")(input, axis=dim, keepdim=True)
        extremes = Ordered(app.take_along_axis(input, places, dim) if input.ndim else input, places)
        return extremes if keepdim or not input.ndim else Ordered(*(app.squeeze(value, axis=dim) for value in extremes))

    return extreme


def _product(name: str, *ranks: int) -> Callable[..., Any]:
    def product(input: Any, other: Any) -> Any:
        if (input.ndim, other.ndim) != ranks:
            actual = f"found {input.ndim} and {other.ndim}"
            raise ShapeError(f"{name} takes Tensors of {ranks[0]} and {ranks[1]} axes, {actual}; use matmul")
        return app.unsqueeze(input, 1) * other if name == "outer" else app.matmul(input, other)

    return product


def _sort(input: Any, dim: int = -1, descending: bool = False) -> Ordered:
    places = app.argsort(input, axis=dim, descending=descending)
    return Ordered(app.take_along_axis(input, places, dim), places)


def _reshape(input: Any, *shape: Any) -> Any:
    target = sizes(shape)
    if 0 in target:  # for the framework's reshape, 0 copies a size
        raise ShapeError(f"reshape: a shape with a size of 0, as {target}, is not supported")
    return app.reshape(input, shape=target)


def _view(self: Any, *shape: Any) -> Any:
    result = _reshape(self, *shape)
    if self._array.size and not np.may_share_memory(self._array, result._array):
        raise ShapeError(
            f"view: a Tensor whose elements are not in row-major order in memory, of shape {list(self.shape)}, has no "
            f"view of shape {list(result.shape)}; use reshape, which copies it"
        )
    return result


def _t(input: Any) -> Any:
    if input.ndim > 2:
        raise ShapeError(f"t() takes a matrix or a vector, found a Tensor with {input.ndim} axes; use transpose")
    return app.transpose(input)


def _expand(self: Any, *shape: Any) -> Any:
    target = sizes(shape)
    own = [1] * (len(target) - self.ndim) + list(self.shape)
    return app.broadcast_to(self, [o if s == -1 else s for s, o in zip(target, own, strict=True)])


def _places(index: Any) -> Any:
    """Places along an axis, which PyTorch does not count from the end here."""
    if (index._array < 0).any():
        raise ShapeError(f"an index of {index._array.min()} is out of bounds: places are not counted from the end here")
    return index


def _with_elements(input: Any, dim: int, index: Any, src: Any) -> Any:
    """A value whose elements at places along an axis are those of another one."""
    return put_items([input, src, index], items=along(normal_axis(dim, len(input.shape))))


def _contiguous(self: Any) -> Any:
    if self._array.flags.c_contiguous:
        return self
    copied = app.assign(self)
    copied._array = np.ascontiguousarray(copied._array)
    return copied


_BOTH: dict[str, Callable[..., Any]] = {
    **{name: _binary(old) for name, _, old in (pair.partition("=") for pair in _RENAMED.split())},
    **{name: _over_axes(name) for name in _OVER_AXES.split()},
    "add": lambda input, other, *, alpha=1: app.add(input, other if alpha == 1 else other * alpha),
    "sub": lambda input, other, *, alpha=1: app.subtract(input, other if alpha == 1 else other * alpha),
    "clamp": lambda input, min=None, max=None: app.clip(input, min, max),
    "prod": _prod,
    "max": _extreme("max", "maximum"),
    "min": _extreme("min", "minimum"),
    "var": lambda input, dim=None, unbiased=True, keepdim=False: app.var(input, dim, unbiased, keepdim),
    "std": lambda input, dim=None, unbiased=True, keepdim=False: app.std(input, dim, unbiased, keepdim),
    "norm": lambda input, p=2, dim=None, keepdim=False: app.norm(input, p, dim, keepdim),
    "softmax": lambda input, dim: app.softmax(input, axis=dim),
    "log_softmax": lambda input, dim: app.log_softmax(input, axis=dim),
    "equal": lambda input, other: np.array_equal(input._array, other._array),
    "allclose": lambda input, other, rtol=1e-05, atol=1e-08: np.allclose(input._array, other._array, rtol, atol),
    **{name: _product(name, *ranks) for name, *ranks in (("mm", 2, 2), ("mv", 2, 1), ("bmm", 3, 3), ("dot", 1, 1))},
    "outer": _product("outer", 1, 1),
    "sort": _sort,
    "reshape": _reshape,
    "t": _t,
    "permute": lambda input, *dims: app.transpose(input, perm=sizes(dims)),
    "transpose": lambda input, dim0, dim1: app.swapaxes(input, dim0, dim1),
    "squeeze": lambda input, dim=None: app.squeeze(input, axis=dim),
    "unsqueeze": lambda input, dim: app.unsqueeze(input, axis=dim),
    "flatten": lambda input, start_dim=0, end_dim=-1: (
        input if input.ndim == 1 else app.flatten(input, start_dim, end_dim)
    ),
    "gather": lambda input, dim, index: app.take_along_axis(input, _places(index), dim, broadcast=False),
    "scatter": lambda input, dim, index, src: _with_elements(input, dim, _places(index), src),
    "clone": lambda input: app.assign(input),
}
FUNCTIONS: dict[str, Any] = {
    **{name: getattr(app, name) for name in SAME},
    **_BOTH,
    "cat": lambda tensors, dim=0: app.concat(list(tensors), axis=dim),
    "stack": lambda tensors, dim=0: app.stack(list(tensors), dim),
    "where": lambda condition, input, other: app.where(condition, input, other),
    "is_tensor": lambda obj: isinstance(obj, Tensor),
}
"""The functions of the module `torch`; `_creation` adds those that make Tensors."""


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args, **settings: self.become(function(self, *args, **settings))


METHODS: dict[str, Any] = {
    **_BOTH,
    "where": lambda self, condition, other: app.where(condition, self, other),
    "view": _view,
    "view_as": lambda self, other: _view(self, *other.shape),
    "expand": _expand,
    "expand_as": lambda self, other: _expand(self, *other.shape),
    "contiguous": _contiguous,
    **{f"{name}_": _in_place(FUNCTIONS[name]) for name in _IN_PLACE.split()},
}
"""The methods of Tensors."""
