"""Results and gradients against those of another operator that should compute the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.checking.checks.gradient import SPECIAL
from app.checking.subject import Arrays, Result, Subject, are_near
from app.checking.verdict import Verdict, failed, note, ok
from app.custom.gradcheck import worst_of

_NUMBERS = (*SPECIAL, -0.0, 20.0, -20.0, 1000.0, -1000.0)
_NOT_FINITE = (np.inf, -np.inf, np.nan)


def like(subject: Subject) -> Iterator[Verdict]:
    """Results and gradients equal those of the equivalent: at random numbers, kinks, infinities and NaN.

    Another gradient is a note at a kink, where several are right, and where an input is not finite.
    """
    if not subject.like:
        return
    verdicts: list[Verdict] = []
    for arrays, what in (
        (subject.arrays(), "drawn numbers"),
        (subject.spread(_NUMBERS), "special numbers"),
        (subject.spread((*_NUMBERS, *_NOT_FINITE)), "special numbers"),
    ):
        mine, wanted = subject.run(arrays), subject.run_equivalent(arrays)
        if [o.shape for o in mine.outputs] != [o.shape for o in wanted.outputs]:
            shapes = [list(o.shape) for o in mine.outputs], [list(o.shape) for o in wanted.outputs]
            yield failed(f"gives shapes {shapes[0]}, {subject.like} gives {shapes[1]}")
            return
        for found, expected in zip(mine.outputs, wanted.outputs, strict=True):
            differ = _differ(found, expected)
            words = worst_of(found, expected, differ, "it gives", f"{subject.like} gives", subject.named(arrays))
            if words:
                yield failed(f"on {what} the result is {words}")
                return
        if not verdicts and not subject.is_surrogate:
            verdicts = [*_of_gradients(subject, arrays, what, mine, wanted)]
            yield from verdicts
    if not any(verdict.failed for verdict in verdicts):
        yield ok(f"the results equal those of {subject.like}, also for zeros, infinities and NaN")


def _of_gradients(subject: Subject, arrays: Arrays, what: str, mine: Result, wanted: Result) -> Iterator[Verdict]:
    """Which gradients differ: those of the operator's own kinks, and those that are wrong."""
    finite = all(np.isfinite(a).all() for a in arrays)
    places = [place for place, one in enumerate(subject.inputs) if one.is_float]
    for place, g, e in zip(places, mine.gradients, wanted.gradients, strict=True):
        if g is None or e is None:
            continue
        differ = _differ(g, e)
        wrong = differ & ~_kinks(subject, arrays, place, differ) if finite else np.zeros_like(differ)
        shown = wrong if wrong.any() else differ
        words = worst_of(g, e, shown, "it gives", f"{subject.like} gives", subject.named(arrays))
        if not words:
            continue
        verdict = f"on {what} the gradient of {subject.inputs[place].name} is {words}"
        yield failed(verdict) if wrong.any() else note(verdict.replace("is wrong", "is another"))


def _kinks(subject: Subject, arrays: Arrays, place: int, where: np.ndarray) -> np.ndarray:
    """At which of these elements of an input the slopes of the operator to the left and to the right differ."""
    kinks = np.zeros(where.shape, bool)
    here, size = subject.outputs(arrays), subject.precision.step
    for index in map(tuple, np.argwhere(where)):
        slopes = []
        for step in (-size, size):
            moved = [a.copy() for a in arrays]
            moved[place][index] += step
            slopes.append([(new - old) / step for new, old in zip(subject.outputs(moved), here, strict=True)])
        kinks[index] = any(
            not np.allclose(left, right, rtol=1e-2, atol=1e-3) for left, right in zip(*slopes, strict=True)
        )
    return kinks


def _differ(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return ~are_near(found, expected, 1e-6)
