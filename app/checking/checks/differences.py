"""How two results differ, in a few words, for checks that compare two ways of running an operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.checking.subject import Result, are_near
from app.custom.gradcheck import worst_of

RTOL, ATOL = 1e-7, 1e-9


def first_difference(
    actual: Result, expected: Result, float_inputs: Sequence[str], rtol: float = RTOL, atol: float = ATOL
) -> str:
    """The first output or gradient that differs from what is expected, with both values at its worst element; '' if
    none does. A missing gradient counts as zeros.
    """
    names = [f"output {place}" for place in range(len(actual.outputs))]
    names += [f"the gradient of {name}" for name in float_inputs]
    pairs = zip([*actual.outputs, *actual.gradients], [*expected.outputs, *expected.gradients], strict=False)
    for name, (a, e) in zip(names, pairs, strict=False):
        one = np.zeros_like(e) if a is None else a
        difference = "" if a is e is None else _difference(one, np.zeros_like(one) if e is None else e, rtol, atol)
        if difference:
            return f"{name} {difference}"
    return ""


def _difference(actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> str:
    if actual.shape != expected.shape:
        return f"has shape {list(actual.shape)}, expected {list(expected.shape)}"
    near = are_near(actual, expected, rtol, atol) if rtol else np.equal(actual, expected)
    if expected.any() and not actual.any() and not near.all():
        return "is zero"
    difference = worst_of(actual, expected, ~near, "it is", "expected")
    return difference and f"is {difference}"
