"""The value in the middle of others, and those at any share of the way from the least to the largest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from app.errors import OperatorError
from app.ops.composed import composed
from app.ops.dtype import is_float
from app.ops.gathering import take_along_axis
from app.ops.joining import stack
from app.ops.logic import isnan, logical_not, where
from app.ops.reduction import mean, sum
from app.ops.rounding import ceil, clip, floor, round
from app.ops.shaping import cast, cast_like, flatten, reshape, transpose
from app.ops.sorting import kthvalue, sort
from app.ops.spec import UNKNOWN, count, normal_axis, reduced_axes


@composed
def median(x: Any, axis: int | None = None, keepdim: bool = False, mode: str = "avg", name: Any = None) -> Any:
    """The value in the middle, or the mean of the two that are; with mode 'min', the lower one and its place."""
    if mode not in ("avg", "min"):
        raise OperatorError(f"median: mode is 'avg' or 'min', not {mode!r}")
    along = 0 if axis is None else axis
    line = flatten(x) if axis is None else x
    size = line.shape[normal_axis(along, len(line.shape))]
    if size == UNKNOWN:
        raise OperatorError("median needs a size that is known along its axis")
    low = (size - 1) // 2
    found: tuple[Any, ...]
    if mode == "min":
        found = kthvalue(line, low + 1, along, True)
    else:
        parts: list[Any] = [slice(None)] * len(line.shape)
        parts[along] = slice(low, size // 2 + 1)
        found = (mean(sort(line, along)[tuple(parts)], axis=along, keepdim=True),)
    kept = [1] * len(x.shape) if axis is None else None
    results = tuple(_without(part, along, keepdim, kept) for part in found)
    return results if mode == "min" and axis is not None else results[0]


def _without(x: Any, axis: int, keepdim: bool, kept: list[int] | None) -> Any:
    if keepdim:
        return x if kept is None else reshape(x, kept)
    return x.squeeze(axis)


_WAYS = ("linear", "lower", "higher", "midpoint", "nearest")


@composed
def quantile(
    x: Any, q: Any, axis: Any = None, keepdim: bool = False, interpolation: str = "linear", name: Any = None
) -> Any:
    """The value below which a share `q` of the values along an axis is; of several shares, along a new first axis."""
    return _quantile(x, q, axis, keepdim, interpolation, nan=True)


@composed
def nanquantile(
    x: Any, q: Any, axis: Any = None, keepdim: bool = False, interpolation: str = "linear", name: Any = None
) -> Any:
    """`quantile` of the elements that are numbers."""
    return _quantile(x, q, axis, keepdim, interpolation, nan=False)


def _quantile(x: Any, q: Any, axis: Any, keepdim: bool, interpolation: str, nan: bool) -> Any:
    if interpolation not in _WAYS:
        raise OperatorError(f"quantile: interpolation is one of {', '.join(_WAYS)}, not {interpolation!r}")
    shares = np.asarray(q, float)
    if shares.ndim > 1 or not np.all((shares >= 0) & (shares <= 1)):
        raise OperatorError(f"quantile: q is a share from 0 to 1, or a list of them, not {q!r}")
    axes = reduced_axes(axis, len(x.shape))
    kept = [1 if i in axes else size for i, size in enumerate(x.shape)]
    ordered = sort(_joined(x, axes), 0)
    numbers = sum(cast(logical_not(isnan(ordered)), dtype="float64"), axis=0, keepdim=True)
    found = [_at_share(ordered, numbers, float(share), interpolation, nan) for share in shares.reshape(-1)]
    found = [reshape(one, kept if keepdim else [n for i, n in enumerate(kept) if i not in axes]) for one in found]
    return stack(found) if shares.ndim else found[0]


def _joined(x: Any, axes: tuple[int, ...]) -> Any:
    """The value with these axes made the first one."""
    others = [i for i in range(len(x.shape)) if i not in axes]
    turned = transpose(x, perm=[*axes, *others]) if x.shape else x
    return reshape(turned, [count([x.shape[a] for a in axes]), *(x.shape[i] for i in others)])


def _at_share(ordered: Any, numbers: Any, share: float, interpolation: str, nan: bool) -> Any:
    """The values at a share of the way through the numbers, which come before what is not a number."""
    place = clip((numbers - 1.0) * share, min=0.0)
    low, high = floor(place), ceil(place)
    part = {"lower": place * 0.0, "higher": high - low, "midpoint": (high - low) * 0.5, "linear": place - low}.get(
        interpolation, round(place) - low
    )
    below, above = (take_along_axis(ordered, cast(p, dtype="int64"), axis=0) for p in (low, high))
    found = below + (above - below) * (cast_like(part, below) if is_float(below.dtype) else part)
    return where(numbers == ordered.shape[0], found, math.nan) if nan else found


@composed
def nanmedian(x: Any, axis: Any = None, keepdim: bool = False, name: Any = None) -> Any:
    """The median of the elements that are numbers."""
    return nanquantile(x, 0.5, axis, keepdim)
