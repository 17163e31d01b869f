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
        own, equivalent = subject.run(arrays), subject.run_equivalent(arrays)
        if [o.shape for o in own.outputs] != [o.shape for o in equivalent.outputs]:
            shapes = [list(o.shape) for o in own.outputs], [list(o.shape) for o in equivalent.outputs]
            yield failed(f"gives shapes {shapes[0]}, {subject.like} gives {shapes[1]}")
            return
        for actual, expected in zip(own.outputs, equivalent.outputs, strict=True):
            differ = _differ(actual, expected)
            difference = worst_of(actual, expected, differ, "it gives", f"{subject.like} gives", subject.named(arrays))
            if difference:
                yield failed(f"on {what} the result is {difference}")
                return
        if not verdicts and not subject.is_surrogate:
            verdicts = [*_of_gradients(subject, arrays, what, own, equivalent)]
            yield from verdicts
    if not any(verdict.failed for verdict in verdicts):
        yield ok(f"the results equal those of {subject.like}, also for zeros, infinities and NaN")


def _of_gradients(subject: Subject, arrays: Arrays, what: str, own: Result, equivalent: Result) -> Iterator[Verdict]:
    """Which gradients differ: those of the operator's own kinks, and those that are wrong."""
    finite = all(np.isfinite(a).all() for a in arrays)
    places = [place for place, one in enumerate(subject.inputs) if one.is_float]
    for place, g, e in zip(places, own.gradients, equivalent.gradients, strict=True):
        if g is None or e is None:
            continue
        differ = _differ(g, e)
        wrong = differ & ~_kinks(subject, arrays, place, differ) if finite else np.zeros_like(differ)
        shown = wrong if wrong.any() else differ
        difference = worst_of(g, e, shown, "it gives", f"{subject.like} gives", subject.named(arrays))
        if not difference:
            continue
        verdict = f"on {what} the gradient of {subject.inputs[place].name} is {difference}"
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


def _differ(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return ~are_near(actual, expected, 1e-6)
