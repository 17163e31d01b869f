"""Results and gradients against those of another operator that should compute the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.checking.checks.gradient import SPECIAL
from app.checking.subject import Arrays, Subject
from app.checking.verdict import Verdict, failed, note, ok
from app.custom.gradcheck import worst_of

_NUMBERS = (*SPECIAL, -0.0, 20.0, -20.0, 1000.0, -1000.0, np.inf, -np.inf, np.nan)


def like(subject: Subject) -> Iterator[Verdict]:
    """Results and gradients equal those of the equivalent: at random numbers, kinks, infinities and NaN."""
    if not subject.like:
        return
    drawn = subject.arrays()
    for arrays, what in ((drawn, "drawn numbers"), (subject.spread(_NUMBERS), "special numbers")):
        mine, wanted = subject.run(arrays), subject.run_equivalent(arrays)
        if [o.shape for o in mine.outputs] != [o.shape for o in wanted.outputs]:
            shapes = [list(o.shape) for o in mine.outputs], [list(o.shape) for o in wanted.outputs]
            yield failed(f"gives shapes {shapes[0]}, {subject.like} gives {shapes[1]}")
            return
        for found, expected in zip(mine.outputs, wanted.outputs, strict=True):
            words = worst_of(found, expected, _differ(found, expected), "it gives", f"{subject.like} gives")
            if words:
                yield failed(f"on {what} the result is {words}{_at(arrays, found, expected)}")
                return
        for name, g, e in zip(subject.wanted, mine.gradients, wanted.gradients, strict=True):
            words = "" if g is None or e is None else worst_of(g, e, _differ(g, e), "it gives", f"{subject.like} gives")
            if g is None or e is None or not words:
                continue
            verdict = f"on {what} the gradient of {name} is {words}{_at(arrays, g, e)}"
            yield failed(verdict) if arrays is drawn else note(verdict.replace("is wrong", "is another"))
    yield ok(f"the results equal those of {subject.like}, also for zeros, infinities and NaN")


def _differ(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return ~np.isclose(found, expected, rtol=1e-6, atol=1e-9, equal_nan=True)


def _at(arrays: Arrays, found: np.ndarray, expected: np.ndarray) -> str:
    """The inputs of an elementwise operator at the largest difference."""
    if any(a.shape != found.shape for a in arrays):
        return ""
    with np.errstate(invalid="ignore"):
        distance = np.abs(found - expected)
    distance = np.where(_differ(found, expected), np.where(np.isnan(distance), np.inf, distance), -1)
    place = np.unravel_index(np.argmax(distance), found.shape)
    return f", for {', '.join(f'{a[place]:g}' for a in arrays)}"
