"""How two lists of arrays differ, in a few words, for checks that compare two ways of running an operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.checking.subject import are_near

RTOL, ATOL = 1e-7, 1e-9


def first_difference(
    actual: Sequence[np.ndarray | None],
    expected: Sequence[np.ndarray | None],
    names: Sequence[str],
    rtol: float = RTOL,
    atol: float = ATOL,
) -> str:
    """The first array that differs from what is expected, with both values at its worst element; '' if none does.

    A missing gradient counts as zeros.
    """
    for name, f, e in zip(names, actual, expected, strict=False):
        if f is None and e is None:
            continue
        one = np.zeros_like(e) if f is None and e is not None else f
        other = np.zeros_like(f) if e is None and f is not None else e
        assert one is not None
        assert other is not None
        difference = _difference(one, other, rtol, atol)
        if difference:
            return f"{name} {difference}"
    return ""


def _difference(actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> str:
    if actual.shape != expected.shape:
        return f"has shape {list(actual.shape)}, expected {list(expected.shape)}"
    far = ~(are_near(actual, expected, rtol, atol) if rtol else np.equal(actual, expected))
    if not far.any():
        return ""
    if expected.any() and not actual.any():
        return "is zero"
    with np.errstate(invalid="ignore"):
        distance = np.where(far, np.nan_to_num(np.abs(actual - expected), nan=np.inf), -1.0)
    worst = np.unravel_index(np.argmax(distance), actual.shape)
    return (
        f"is wrong in {int(far.sum())} of {far.size} elements; worst at {[int(i) for i in worst]}: "
        f"{actual[worst]:.8g}, expected {expected[worst]:.8g}"
    )


def gradient_names(inputs: Sequence[str]) -> list[str]:
    return [f"the gradient of {name}" for name in inputs]
