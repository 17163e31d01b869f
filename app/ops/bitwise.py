"""Logic on each bit of whole numbers; on truth values, the logic of truth values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from app.ops.arithmetic import quotient_in_onnx
from app.ops.elementwise import elementwise
from app.ops.public import public
from app.ops.values import Array, Results


def _in_onnx(name: str) -> Callable[..., Any]:
    """The rule of an operator of which ONNX has one for truth values, and another for bits."""
    return lambda onnx, x, y: getattr(onnx, name if x.dtype == "bool" else f"Bitwise{name}")(x, y)


@public(method=True, in_place=True)
@elementwise(whole=True, checked=True, onnx=_in_onnx("And"))
def bitwise_and(x: Array, y: Array) -> Results:
    """The bits that are set in both values."""
    return np.bitwise_and(x, y)


@public(method=True, in_place=True)
@elementwise(whole=True, checked=True, onnx=_in_onnx("Or"))
def bitwise_or(x: Array, y: Array) -> Results:
    """The bits that are set in at least one of the values."""
    return np.bitwise_or(x, y)


@public(method=True, in_place=True)
@elementwise(whole=True, checked=True, onnx=_in_onnx("Xor"))
def bitwise_xor(x: Array, y: Array) -> Results:
    """The bits that are set in exactly one of the values."""
    return np.bitwise_xor(x, y)


@public("bitwise_invert", method=True, in_place=True)
@elementwise(whole=True, checked=True, onnx=lambda onnx, x: onnx.Not(x) if x.dtype == "bool" else onnx.BitwiseNot(x))
def bitwise_not(x: Array) -> Results:
    """The bits that are not set."""
    return np.invert(x)


def _moved_up(x: Any, y: Any) -> Any:
    return np.int64(x) << np.int64(y) if 0 <= y < 64 else np.int64(0)  # a processor takes places modulo 32 or 64


def _moved_down(x: Any, y: Any) -> Any:
    return np.int64(x) >> (np.int64(y) if 0 <= y < 64 else np.int64(63))


@public(method=True, in_place=True)
@elementwise(
    whole=True,
    numbers=True,
    checked=True,
    integers=_moved_up,
    onnx=lambda onnx, x, y: x * onnx.Pow(onnx.constant(2, y.dtype), y),
)
def bitwise_left_shift(x: Array, y: Array) -> Results:
    """The bits moved up by as many places as the second value says."""
    return np.left_shift(x, y)


@public(method=True, in_place=True)
@elementwise(
    whole=True,
    numbers=True,
    checked=True,
    integers=_moved_down,
    onnx=lambda onnx, x, y: quotient_in_onnx(onnx, x, onnx.Pow(onnx.constant(2, y.dtype), y)),
)
def bitwise_right_shift(x: Array, y: Array) -> Results:
    """The bits moved down by as many places as the second value says; the sign stays."""
    return np.right_shift(x, y)
