"""NumPy's functions, and a few of `math`, in terms of others: these take the place of their calls.

They have the parameters of NumPy's functions that can be derived. Parameters between them are left out, so that what
follows them is given by name. Numba lacks some of these functions, or has them for numbers of one type only.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np


def _root(squares: Any) -> Any:
    """The square root, with slope 0 at 0."""
    return np.where(squares == 0, 0.0, np.sqrt(np.where(squares == 0, 1.0, squares)))


def var(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    deviation = a - np.mean(a, axis, keepdims=True)
    if ddof == 0:
        return np.mean(deviation * deviation, axis, keepdims=keepdims)
    count = a.size if axis is None else a.shape[axis]
    return np.sum(deviation * deviation, axis, keepdims=keepdims) / (count - ddof)


def std(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    return _root(np.var(a, axis, ddof=ddof, keepdims=keepdims))


def norm(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _root(np.sum(x * x, axis, keepdims=keepdims))


def average(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.mean(a, axis, keepdims=keepdims)


def ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.max(a, axis, keepdims=keepdims) - np.min(a, axis, keepdims=keepdims)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.sum(np.where(a != 0, 1, 0), axis, keepdims=keepdims)


def any_(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.count_nonzero(a, axis, keepdims=keepdims) > 0


def all_(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.sum(np.where(a != 0, 0, 1), axis, keepdims=keepdims) == 0


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    added = np.asarray(values)
    if axis is not None:
        return np.concatenate((arr, added), axis)
    if np.ndim(added) == 0:
        return np.hstack((np.ravel(arr), added))
    return np.concatenate((np.ravel(arr), np.ravel(added)))


def array_equal(a1: Any, a2: Any) -> Any:
    return np.all(a1 == a2)


def diff(a: Any, *, axis: int = -1) -> Any:
    first = np.moveaxis(a, axis, 0)
    return np.moveaxis(first[1:] - first[:-1], 0, axis)


def inner(a: Any, b: Any) -> Any:
    return np.dot(a, b.T)


def vdot(a: Any, b: Any) -> Any:
    return np.sum(np.ravel(a) * np.ravel(b))


def cross(a: Any, b: Any) -> Any:
    a = np.asarray(a)
    b = np.asarray(b)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError("np.cross has a gradient for vectors with three elements only")
    one = np.roll(a, -1, axis=-1) * np.roll(b, -2, axis=-1)
    return one - np.roll(a, -2, axis=-1) * np.roll(b, -1, axis=-1)


def nansum(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.sum(np.where(np.isnan(a), 0.0, a), axis, keepdims=keepdims)


def nanprod(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.prod(np.where(np.isnan(a), 1.0, a), axis, keepdims=keepdims)


def nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    count = np.sum(np.where(np.isnan(a), 0.0, 1.0), axis, keepdims=keepdims)
    return np.nansum(a, axis, keepdims=keepdims) / count


def nanvar(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    deviation = np.where(np.isnan(a), 0.0, a - np.nanmean(a, axis, keepdims=True))
    count = np.sum(np.where(np.isnan(a), 0.0, 1.0), axis, keepdims=keepdims)
    return np.sum(deviation * deviation, axis, keepdims=keepdims) / (count - ddof)


def nanstd(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    return _root(np.nanvar(a, axis, ddof=ddof, keepdims=keepdims))


def nanmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    largest = np.max(np.where(np.isnan(a), -np.inf, a), axis, keepdims=keepdims)
    return np.where(np.all(np.isnan(a), axis, keepdims=keepdims), np.nan, largest)


def nanmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    smallest = np.min(np.where(np.isnan(a), np.inf, a), axis, keepdims=keepdims)
    return np.where(np.all(np.isnan(a), axis, keepdims=keepdims), np.nan, smallest)


def trace(a: Any) -> Any:
    return np.sum(np.diag(a))


def clip(a: Any, a_min: Any, a_max: Any) -> Any:
    if a_min is None:
        return np.minimum(a, a_max)
    if a_max is None:
        return np.maximum(a, a_min)
    return np.minimum(np.maximum(a, a_min), a_max)


def heaviside(x1: Any, x2: Any) -> Any:
    return np.where(x1 > 0, 1.0, np.where(x1 < 0, 0.0, np.where(x1 == 0, x2, x1)))


def fix(x: Any) -> Any:
    return np.trunc(x)


def cbrt(x: Any) -> Any:
    return np.cbrt(x)


def fmod(x: Any, y: Any) -> Any:
    return np.fmod(x, y)


def remainder(x: Any, y: Any) -> Any:
    return x - y * np.rint(x / y)


DEFINITIONS: dict[Any, Any] = {
    np.var: var,
    np.std: std,
    np.linalg.norm: norm,
    np.average: average,
    np.ptp: ptp,
    np.count_nonzero: count_nonzero,
    np.any: any_,
    np.all: all_,
    np.append: append,
    np.array_equal: array_equal,
    np.diff: diff,
    np.inner: inner,
    np.vdot: vdot,
    np.trace: trace,
    np.cross: cross,
    np.nansum: nansum,
    np.nanprod: nanprod,
    np.nanmean: nanmean,
    np.nanvar: nanvar,
    np.nanstd: nanstd,
    np.nanmax: nanmax,
    np.nanmin: nanmin,
    np.clip: clip,
    np.heaviside: heaviside,
    np.fix: fix,
    math.fmod: fmod,
    math.remainder: remainder,
}
if sys.version_info >= (3, 11):
    DEFINITIONS[math.cbrt] = cbrt
