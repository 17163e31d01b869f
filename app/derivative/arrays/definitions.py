"""NumPy's functions, and a few of `math`, in terms of others: these take the place of their calls.

They have the parameters of NumPy's functions that can be derived. Parameters between them are left out, so that what
follows them is given by name. Numba lacks some of these functions, or has them for numbers of one type only.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np


def var(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    deviation = a - np.mean(a, axis, keepdims=True)
    count = a.size if axis is None else a.shape[axis]
    return np.sum(deviation * deviation, axis, keepdims=keepdims) / (count - ddof)


def std(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    return np.sqrt(np.var(a, axis, ddof=ddof, keepdims=keepdims))


def norm(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    squares = np.sum(x * x, axis, keepdims=keepdims)
    return np.where(squares == 0, 0.0, np.sqrt(np.where(squares == 0, 1.0, squares)))  # with slope 0 at 0


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


def diff(a: Any, *, axis: int = -1) -> Any:
    first = np.moveaxis(a, axis, 0)
    return np.moveaxis(first[1:] - first[:-1], 0, axis)


def inner(a: Any, b: Any) -> Any:
    return np.dot(a, b.T)


def vdot(a: Any, b: Any) -> Any:
    return np.sum(np.ravel(a) * np.ravel(b))


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
    np.diff: diff,
    np.inner: inner,
    np.vdot: vdot,
    np.trace: trace,
    np.clip: clip,
    np.heaviside: heaviside,
    np.fix: fix,
    math.fmod: fmod,
    math.remainder: remainder,
}
if sys.version_info >= (3, 11):
    DEFINITIONS[math.cbrt] = cbrt
