"""Reductions over axes, and sorting."""

from __future__ import annotations

from typing import Any, NamedTuple

import app
from app.compat.torch._grad_fn import called
from app.compat.torch._printing import returned_text
from app.compat.torch._size import along
from app.compat.torch._table import register, rows
from app.ops.dtype import is_float


class Chosen(NamedTuple):
    """Values along an axis, and their indices."""

    values: Any
    indices: Any


CHOSEN = {name: type(name, (Chosen,), {"__repr__": returned_text}) for name in ("max", "min", "sort", "topk")}
"""The kind of pair that each function gives: it prints the function's name."""


rows(
    """
    all = all(input, dim:axis, keepdim)
    any = any(input, dim:axis, keepdim)
    argmax = argmax(input, dim:axis, keepdim)
    argmin = argmin(input, dim:axis, keepdim)
    argsort = argsort(input, dim:axis, descending)
    diff = diff(input, n, dim:axis, prepend, append)
    logsumexp = logsumexp(input, dim:axis, keepdim)
    """
)


def _typed(input: Any, dtype: Any) -> Any:
    return input if dtype is None else app.cast(input, dtype=dtype)


def _axis(dim: Any) -> Any:
    """An empty list of axes means all of them."""
    return None if dim == () or dim == [] else dim


@register()
def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The maximum over axes; equal ones share the gradient."""
    return app.amax(input, axis=_axis(dim), keepdim=keepdim)


@register()
def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The minimum over axes; equal ones share the gradient."""
    return app.amin(input, axis=_axis(dim), keepdim=keepdim)


@register()
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """The number of elements over axes that are not 0."""
    return app.count_nonzero(input, axis=_axis(dim))


@register()
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum over axes."""
    return _typed(app.sum(_typed(input, dtype), axis=_axis(dim), keepdim=keepdim), dtype)


@register()
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean over axes."""
    return app.mean(_typed(input, dtype), axis=_axis(dim), keepdim=keepdim)


@register()
def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The product over axes."""
    wide = "int64" if dtype is None and not is_float(input.dtype) else dtype  # as for a sum
    return app.prod(_typed(input, wide), axis=dim, keepdim=keepdim)


@register(in_place=True)
def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The cumulative sum along an axis."""
    return _typed(app.cumsum(_typed(input, dtype), axis=dim), dtype)


def _extreme(name: str, of_two: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    if dim is None:
        return getattr(app, name)(input)
    if hasattr(dim, "dtype"):
        return of_two(input, dim)
    places = getattr(app, f"arg{name}")(input, axis=dim, keepdim=True)
    return _pair(name, app.take_along_axis(input, places, dim) if input.ndim else input, places, dim, keepdim)


def _pair(name: str, values: Any, places: Any, dim: int, keepdim: bool) -> Any:
    if not keepdim and values.ndim:
        values, places = app.squeeze(values, axis=dim), app.squeeze(places, axis=dim)
    return CHOSEN[name](values, places)


@register()
def max(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The maximum; along an axis, with its indices; of two Tensors, elementwise."""
    return _extreme("max", app.maximum, input, dim, keepdim)


@register()
def min(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The minimum; along an axis, with its indices; of two Tensors, elementwise."""
    return _extreme("min", app.minimum, input, dim, keepdim)


@register()
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The elements sorted along an axis, with their indices."""
    places = app.argsort(input, axis=dim, descending=descending)
    return CHOSEN["sort"](app.take_along_axis(input, places, dim), places)


@register()
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest, or smallest, elements along an axis, with their indices."""
    if k == 0:
        empty = input[along(input, dim, slice(0))]
        return CHOSEN["topk"](empty, app.cast(empty, dtype="int64"))
    return CHOSEN["topk"](*app.topk(input, k, axis=dim, largest=largest, sorted=sorted))


def _unbiased(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, bool]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is not None:
        if correction not in (0, 1):
            raise ValueError(f"correction is 0 or 1, found {correction}")
        unbiased = bool(correction)
    return _axis(dim), unbiased


@register()
def std(input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None) -> Any:
    """The standard deviation over axes; by default with divisor n - 1."""
    axis, unbiased = _unbiased(dim, unbiased, correction)
    variance = app.var(input, axis, unbiased, keepdim)
    there = variance != 0  # the gradient of equal elements is 0, not NaN
    return called("Std", app.where(there, app.sqrt(app.where(there, variance, 1.0)), variance))


@register()
def var(input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None) -> Any:
    """The variance over axes; by default with divisor n - 1."""
    axis, unbiased = _unbiased(dim, unbiased, correction)
    return app.var(input, axis, unbiased, keepdim)


@register()
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The norm over axes; by default the square root of the sum of squares."""
    if p == "nuc":
        raise ValueError('norm: p is a number or "fro"; np.linalg.norm(x.numpy(), "nuc") computes the nuclear norm')
    return app.linalg.vector_norm(_typed(input, dtype), 2 if p in ("fro", None) else p, _axis(dim), keepdim)


@register()
def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The different elements, in order; with places and numbers of each where asked for."""
    found = app.unique(input, return_inverse=return_inverse, return_counts=return_counts, axis=dim)
    if not return_inverse or dim is not None:
        return found
    return (found[0], app.view_as(found[1], input), *found[2:])
