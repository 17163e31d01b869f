"""Bitwise operators on integers; on booleans they are the logical operators."""

from __future__ import annotations

import numpy as np

from app.ops.arithmetic import quotient_in_onnx
from app.ops.elementwise import elementwise
from app.ops.public import public
from app.ops.values import Array, Element, OnnxRule, Results


def _in_onnx(name: str) -> OnnxRule:
    """The ONNX rule of an operator with separate ONNX operators for booleans and integers."""
    return lambda onnx, x, y: getattr(onnx, name if x.dtype == "bool" else f"Bitwise{name}")(x, y)


@public(method=True, in_place=True)
@elementwise(integral=True, checked=True, onnx=_in_onnx("And"))
def bitwise_and(x: Array, y: Array) -> Results:
    """Bitwise and, elementwise."""
    return np.bitwise_and(x, y)


@public(method=True, in_place=True)
@elementwise(integral=True, checked=True, onnx=_in_onnx("Or"))
def bitwise_or(x: Array, y: Array) -> Results:
    """Bitwise or, elementwise."""
    return np.bitwise_or(x, y)


@public(method=True, in_place=True)
@elementwise(integral=True, checked=True, onnx=_in_onnx("Xor"))
def bitwise_xor(x: Array, y: Array) -> Results:
    """Bitwise exclusive or, elementwise."""
    return np.bitwise_xor(x, y)


@public("bitwise_invert", method=True, in_place=True)
@elementwise(integral=True, checked=True, onnx=lambda onnx, x: onnx.Not(x) if x.dtype == "bool" else onnx.BitwiseNot(x))
def bitwise_not(x: Array) -> Results:
    """Bitwise not, elementwise."""
    return np.invert(x)


def _shift_left(x: Element, y: Element) -> Element:
    return np.int64(x) << np.int64(y) if 0 <= y < 64 else np.int64(0)  # processors use the count modulo 32 or 64


def _shift_right(x: Element, y: Element) -> Element:
    return np.int64(x) >> (np.int64(y) if 0 <= y < 64 else np.int64(63))


@public(method=True, in_place=True)
@elementwise(
    integral=True,
    numbers=True,
    checked=True,
    integers=_shift_left,
    onnx=lambda onnx, x, y: x * onnx.Pow(onnx.constant(2, y.dtype), y),
)
def bitwise_left_shift(x: Array, y: Array) -> Results:
    """Left shift by `y` bits, elementwise."""
    return np.left_shift(x, y)


@public(method=True, in_place=True)
@elementwise(
    integral=True,
    numbers=True,
    checked=True,
    integers=_shift_right,
    onnx=lambda onnx, x, y: quotient_in_onnx(onnx, x, onnx.Pow(onnx.constant(2, y.dtype), y)),
)
def bitwise_right_shift(x: Array, y: Array) -> Results:
    """Arithmetic right shift by `y` bits, elementwise."""
    return np.right_shift(x, y)
