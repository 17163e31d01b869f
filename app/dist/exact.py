"""Sums that do not depend on the order in which their terms are added, nor on who has added up which of them.

A sum is two float64 numbers: of each term one takes what is a multiple of 2^-30, the other what is left, rounded to a
multiple of 2^-68 (3e-21). Multiples of one number add up without rounding as long as they are fewer than 2^53: here
for sums below 2^23 (eight million), of 65,536 terms. A single float64 is not enough. Where two float32 numbers make
most of a sum, it is halfway between two others as often as not, and the least of the other terms, be it 1e-20, says
to which of them it is rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.definition import OpDef
from app.ops.form import Elementwise
from app.ops.spec import Spec

HIGH, LOW = 1.5 * 2.0**22, 1.5 * 2.0**-16
"""A float64 beside such a number is rounded to a multiple of 2^-30, or of 2^-68."""


def _infer(high: Spec, low: Spec, x: Spec) -> tuple[Spec, Spec]:
    return high, low


def _on_numbers(high: Any, low: Any, x: Any) -> Any:
    coarse = (x + HIGH) - HIGH
    fine = ((x - coarse) + LOW) - LOW
    return high + coarse, low + fine


def _kernel(high: Any, low: Any, x: Any) -> Any:
    return _on_numbers(high, low, np.float64(x))


add_exactly = OpDef("add_exactly", _kernel, _infer, outputs=("high", "low"), form=Elementwise(_on_numbers))
"""A sum, of which there are two numbers, with one more term."""
