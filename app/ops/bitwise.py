"""Logic on each bit of whole numbers; on truth values, the logic of truth values."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.composed import also_named
from app.ops.elementwise import elementwise


@elementwise(whole=True, checked=True)
def bitwise_and(x: Any, y: Any) -> Any:
    """The bits that are set in both values."""
    return np.bitwise_and(x, y)


@elementwise(whole=True, checked=True)
def bitwise_or(x: Any, y: Any) -> Any:
    """The bits that are set in at least one of the values."""
    return np.bitwise_or(x, y)


@elementwise(whole=True, checked=True)
def bitwise_xor(x: Any, y: Any) -> Any:
    """The bits that are set in exactly one of the values."""
    return np.bitwise_xor(x, y)


@elementwise(whole=True, checked=True)
def bitwise_not(x: Any) -> Any:
    """The bits that are not set."""
    return np.invert(x)


@elementwise(whole=True, numbers=True, checked=True)
def bitwise_left_shift(x: Any, y: Any) -> Any:
    """The bits moved up by as many places as the second value says."""
    return np.left_shift(x, y)


@elementwise(whole=True, numbers=True, checked=True)
def bitwise_right_shift(x: Any, y: Any) -> Any:
    """The bits moved down by as many places as the second value says; the sign stays."""
    return np.right_shift(x, y)


also_named(bitwise_not, "bitwise_invert")
