"""How far results are from the exact ones, in units in the last place (ULP), compiled for billions of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from app.engine.compiled.overloads import KeptOverloads

NEIGHBOURS = 8
"""A result is not wrong if it is exact for an input at most so many numbers away: near a zero, an input's own rounding
is larger than the result."""
FAR = 16.0
"""The error, in ULP, from which on numbers are counted."""

KINDS = ("nan lost", "nan", "wrong", "far", "flushed", "steps back", "all")
"""The kinds of inaccuracy, by row of a record: a number instead of NaN; NaN instead of a number; no correct digit; off
by more than FAR; half or more of a subnormal number lost; a step against the direction of the exact results. The last
row is about all numbers."""
COUNT, LOW, HIGH, WORST, WORST_AT, EXACT, ACTUAL = range(7)
"""The columns of the record: how many inputs, between which, and the worst error, with its input and results."""


def empty_record() -> np.ndarray:
    """A record of no inputs: a row for each kind."""
    record = np.zeros((len(KINDS), ACTUAL + 1))
    record[:, LOW], record[:, HIGH], record[:, WORST] = np.inf, -np.inf, -1.0
    return record


def merged(records: list[np.ndarray]) -> np.ndarray:
    """The record of all inputs, from those of parts of them. Of equal errors, it has that of the input whose bits come
    first, whichever part has it."""
    together = records[0].copy()
    for record in records[1:]:
        worst, negative = record[:, WORST_AT], np.signbit(record[:, WORST_AT])
        sooner = np.where(
            negative == np.signbit(together[:, WORST_AT]),
            abs(worst) < abs(together[:, WORST_AT]),
            ~negative,
        )
        worse = record[:, WORST] > together[:, WORST]
        worse |= (record[:, WORST] == together[:, WORST]) & sooner
        together[worse, WORST:] = record[worse, WORST:]
        together[:, COUNT] += record[:, COUNT]
        together[:, LOW] = np.minimum(together[:, LOW], record[:, LOW])
        together[:, HIGH] = np.maximum(together[:, HIGH], record[:, HIGH])
    return together


@njit(nogil=True, error_model="numpy")
def _note(record: Any, kind: int, error: float, x: float, exact: float, actual: float) -> None:
    record[kind, 0] += 1
    record[kind, 1] = min(record[kind, 1], x)
    record[kind, 2] = max(record[kind, 2], x)
    if error > record[kind, 3]:
        record[kind, 3], record[kind, 4], record[kind, 5], record[kind, 6] = error, x, exact, actual


@njit(nogil=True, error_model="numpy")
def compare(
    x: Any, actual: Any, exact: Any, first: int, last: int, digits: int, smallest: int, end: float, record: Any
) -> None:
    """Add the inputs x[first:last], which are consecutive numbers of a type, to a record.

    The type has `digits` binary digits after the first, 2 ** `smallest` is its smallest normal number, and it has no
    number from `end` on. Both infinities count as `end`.
    """
    normal = 2.0**smallest
    for i in range(first, last):
        expected, result = exact[i], np.float64(actual[i])
        if np.isnan(expected) or np.isnan(result):
            if not np.isnan(expected):
                _note(record, 1, 0.0, x[i], expected, result)
            elif not np.isnan(result):
                _note(record, 0, 0.0, x[i], expected, result)
            continue
        expected, result = min(max(expected, -end), end), min(max(result, -end), end)
        size = min(max(abs(expected), normal), end * 0.5)
        exponent = (np.float64(size).view(np.int64) >> np.int64(52)) - np.int64(digits)
        unit = np.int64(exponent << np.int64(52)).view(np.float64)
        error = abs(result - expected) / unit
        if error > FAR:
            low = high = expected
            for j in range(max(i - NEIGHBOURS, 0), min(i + NEIGHBOURS + 1, len(x))):
                if not np.isnan(exact[j]):
                    low, high = min(low, exact[j]), max(high, exact[j])
            if low <= result <= high:
                error = 0.0
            elif abs(expected) < normal:
                if abs(result - expected) >= 0.5 * abs(expected):
                    _note(record, 4, error, x[i], exact[i], actual[i])
                error = 0.0
            else:
                _note(record, 3, error, x[i], exact[i], actual[i])
                if abs(result - expected) >= 0.5 * abs(expected):
                    _note(record, 2, error, x[i], exact[i], actual[i])
        record[6, 0] += 1
        if error > record[6, 3]:
            record[6, 3], record[6, 4], record[6, 5], record[6, 6] = error, x[i], exact[i], actual[i]
        if i > 0:
            step = np.float64(actual[i]) - np.float64(actual[i - 1])
            if step * (exact[i] - exact[i - 1]) < 0:
                _note(record, 5, abs(step) / unit, x[i], exact[i], actual[i])


compare._cache = KeptOverloads(compare)  # type: ignore[attr-defined]
