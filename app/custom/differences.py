"""A gradient beside finite differences: which elements are wrong, which stand at a kink, and which is the worst."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SMOOTH, KINK, JUMP = "", "kink", "jump"
_FINER = 8.0
"""How much smaller the second step is, which tells a kink from a curve."""


@dataclass
class Comparison:
    """The gradient of one input, and what finite differences give for it."""

    place: int
    """Which input it is."""
    gradient: np.ndarray
    numeric: np.ndarray
    kinds: np.ndarray
    """Of each element that does not agree, what the function does there: SMOOTH, KINK or JUMP."""
    wrong: np.ndarray
    """The elements that neither agree nor stand at a kink, between whose slopes they lie, or at a jump."""
    arriving: np.ndarray | None = None
    """The gradient that arrived at the only output; None of several."""

    def count(self, kind: str) -> int:
        """How many elements stand at a kink, or at a jump, where any value would be right."""
        return int((self.kinds == kind).sum())

    def says(self, by: str, other: str) -> str:
        """How many elements are wrong, and the worst of them; '' if none is."""
        return worst_of(self.gradient, self.numeric, self.wrong, by, other)


def worst_of(found: np.ndarray, wanted: np.ndarray, wrong: np.ndarray, by: str, other: str) -> str:
    """In words: how many elements are wrong, and both values at the worst of them; '' if none is."""
    if not wrong.any():
        return ""
    distance = np.where(wrong, distances(found, wanted), -1.0)
    worst = np.unravel_index(np.argmax(distance), found.shape)
    return (
        f"wrong in {int(wrong.sum())} of {wrong.size} elements; worst at {[int(i) for i in worst]}: "
        f"{by} {found[worst]:.8g}, {other} {wanted[worst]:.8g}"
    )


def distances(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """How far numbers are from others; infinite where one of both is NaN."""
    with np.errstate(invalid="ignore"):
        distance = np.abs(found - wanted)
    return np.where(np.isnan(distance), np.inf, distance)


def are_far(found: np.ndarray, wanted: np.ndarray, atol: float, rtol: float) -> np.ndarray:
    """Which numbers are not near others."""
    distance = distances(found, wanted)
    return np.isinf(distance) | (distance > atol + rtol * np.abs(wanted))


def kind_at(value_at: Callable[[float], float], gradient: float, eps: float, atol: float, rtol: float) -> str:
    """What a function does where its gradient does not agree with central differences.

    `value_at` gives its value a step away. At a kink the slopes to either side stay apart however small the step is,
    and the gradient must lie between them; at a jump they grow with each smaller step.
    """
    here = value_at(0.0)
    if np.isnan(here) or here != value_at(0.0):  # it depends on more than the input, or is NaN
        return SMOOTH
    left, right = (here - value_at(-eps)) / eps, (value_at(eps) - here) / eps
    fine = eps / _FINER
    left_finer, right_finer = (here - value_at(-fine)) / fine, (value_at(fine) - here) / fine
    room = atol + rtol * max(abs(left_finer), abs(right_finer))
    apart, apart_finer = abs(right - left), abs(right_finer - left_finer)
    if abs((left_finer + right_finer) / 2 - gradient) <= room:
        return KINK  # it lies beside, inside the larger step
    if apart <= room or not apart_finer > 0.5 * apart:
        return SMOOTH
    if apart_finer > 0.5 * _FINER * apart:
        return JUMP
    between = min(left_finer, right_finer) - room <= gradient <= max(left_finer, right_finer) + room
    return KINK if between else SMOOTH
