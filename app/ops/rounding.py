"""Sign, rounding and clipping."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import DtypeError
from app.ops.creation import zeros_like
from app.ops.dtype import INTEGERS
from app.ops.elementwise import elementwise
from app.ops.public import public
from app.ops.values import Array, Element, Gradients, Results, Value


@public(method=True, in_place=True)
@elementwise(
    numbers=True,
    scalar=lambda x: np.sign(x) + type(x)(0),  # Numba's sign of -0.0 is -0.0
    integers=lambda x: np.int64(x > 0) - np.int64(x < 0),
    onnx="Sign",
)
def sign(x: Array) -> Results:
    """Sign, elementwise: -1, 0 or 1."""
    return np.sign(x)


@public(method=True, in_place=True)
@elementwise(scalar=lambda x: np.floor(x), onnx=lambda onnx, x: onnx.Floor(x) if x.floating else x)
def floor(x: Array) -> Results:
    """Floor, elementwise: the largest integer not above x."""
    return np.floor(x) if x.dtype.kind == "f" else x.copy()


@public(method=True, in_place=True)
@elementwise(scalar=lambda x: np.ceil(x), onnx=lambda onnx, x: onnx.Ceil(x) if x.floating else x)
def ceil(x: Array) -> Results:
    """Ceiling, elementwise: the smallest integer not below x."""
    return np.ceil(x) if x.dtype.kind == "f" else x.copy()


def _round_one(x: Element, decimals: int) -> Element:
    return np.rint(x * 10.0**decimals) / 10.0**decimals if decimals else np.rint(x)


def _round_whole(x: Element, decimals: int) -> Element:
    return x if decimals >= 0 else np.int64(np.rint(x * 10.0**decimals) / 10.0**decimals)


@public(method=True, in_place=True)
@elementwise(scalar=_round_one, integers=_round_whole)
def round_(x: Array, *, decimals: int = 0) -> Results:
    """Round to `decimals` decimals, elementwise; halves round to even."""
    if x.dtype.kind != "f":
        return x.copy() if decimals >= 0 else _round_one(x, decimals).astype(x.dtype)
    if not decimals:
        return np.rint(x)
    return np.rint(x * x.dtype.type(10.0**decimals)) / x.dtype.type(10.0**decimals)


@round_.in_onnx
def _(onnx: Any, x: Any, decimals: int) -> Any:
    if not x.floating:
        whole = onnx.Cast(x, to="float64")
        return x if decimals >= 0 else onnx.Cast(onnx.Round(whole * 10.0**decimals) / 10.0**decimals, to=x.dtype)
    return onnx.Round(x * 10.0**decimals) / 10.0**decimals if decimals else onnx.Round(x)


@public(method=True, in_place=True)
@elementwise(
    scalar=lambda x: np.trunc(x), onnx=lambda onnx, x: onnx.Sign(x) * onnx.Floor(onnx.Abs(x)) if x.floating else x
)
def trunc(x: Array) -> Results:
    """Truncate toward zero, elementwise."""
    return np.trunc(x) if x.dtype.kind == "f" else x.copy()


@sign.gradient
@floor.gradient
@ceil.gradient
@round_.gradient
@trunc.gradient
def _(dout: Value) -> Gradients:
    return zeros_like(dout)


def _has_range(min: float | None, max: float | None) -> bool:
    """Whether numbers lie between the bounds; if not, each number becomes the upper one."""
    return min is None or max is None or min <= max


def _clip_one(x: Element, min: float | None, max: float | None) -> Element:
    if min is not None and max is not None and min > max:
        return max
    if min is not None and x < min:
        return min
    if max is not None and x > max:
        return max
    return x


def _clip_whole(x: Element, min: float | None, max: float | None) -> Element:
    # compared as whole numbers, since float64 has not all of int64
    if min is not None and max is not None and min > max:
        return np.int64(max)
    if min is not None and x < np.int64(min):
        return np.int64(min)
    if max is not None and x > np.int64(max):
        return np.int64(max)
    return np.int64(x)


def check_whole(what: str, dtype: str, number: float | None) -> None:
    """Refuse a number that an integer type does not have."""
    if dtype not in INTEGERS or number is None:
        return
    if number % 1 != 0:  # NaN included
        raise DtypeError(f"{what} of {dtype} are whole numbers, found {number}; write x.astype('float32') first")
    info = np.iinfo(dtype)
    if not info.min <= int(number) <= info.max:
        raise DtypeError(f"{what} of {dtype} lie between {info.min} and {info.max}, found {number}")


def _check_bounds(dtype: str, min: float | None, max: float | None) -> None:
    for bound in (min, max):
        check_whole("bounds", dtype, bound)


@public(method=True, in_place=True)
@elementwise(
    scalar=_clip_one,
    integers=_clip_whole,
    numbers=True,
    check=_check_bounds,
    gradient=lambda x, out, dout, min, max: dout * (x == out) if _has_range(min, max) else zeros_like(dout),
)
def clip(x: Array, *, min: float | None = None, max: float | None = None) -> Results:
    """Clip to the range from `min` to `max`, elementwise; the gradient is zero outside the range."""
    _check_bounds(x.dtype.name, min, max)  # eager calls infer once for each type, whatever the bounds
    low, high = (None if bound is None else x.dtype.type(bound) for bound in (min, max))
    return np.clip(x, low, high)


@clip.in_onnx
def _(onnx: Any, x: Any, min: float | None, max: float | None) -> Any:
    if x.floating:  # without a bound, Clip changes infinity to the largest number
        min, max = -np.inf if min is None else min, np.inf if max is None else max
    low, high = (None if bound is None else np.asarray(bound).astype(x.dtype) for bound in (min, max))
    return onnx.Clip(x, low, high)
