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
CHUNK = 1024
"""How many numbers are measured in one go: what is written about them stays in the first-level cache."""

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
    errors, steps = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    for begin in range(first, last, CHUNK):
        stop = min(begin + CHUNK, last)
        count = stop - begin
        results, right = actual[begin:stop], exact[begin:stop]
        before = actual[begin - 1 : stop - 1], exact[begin - 1 : stop - 1]
        if begin == 0 or _measure(results, right, *before, digits, smallest, end, errors[:count], steps[:count]):
            _compare_each(x, actual, exact, begin, stop, digits, smallest, end, record)
            continue
        record[6, 0] += count
        _note_worst(record, 6, errors[:count], x, actual, exact, begin)
        _note_steps(record, steps[:count], x, actual, exact, begin)


@njit(nogil=True, error_model="numpy")
def _measure(
    actual: Any,
    exact: Any,
    actual_before: Any,
    exact_before: Any,
    digits: int,
    smallest: int,
    end: float,
    errors: Any,
    steps: Any,
) -> bool:
    """Write the errors of results, and the sizes of their steps back, in ULP, as the bits of float64, which are in the
    order of the numbers. Whether some result has to be looked at by itself: NaN, or far from exact.

    LLVM vectorises the loops of whole numbers. (It does not look for the largest of floats, because of NaN.)
    """
    normal = 2.0**smallest
    far = np.int64(0)
    for i in range(len(errors)):
        expected, result = exact[i], np.float64(actual[i])
        step = result - np.float64(actual_before[i])
        is_back = step * (expected - exact_before[i]) < 0
        is_nan = (expected != expected) | (result != result)
        expected, result = min(max(expected, -end), end), min(max(result, -end), end)
        size = min(max(abs(expected), normal), end * 0.5)
        exponent = (np.float64(size).view(np.int64) >> np.int64(52)) - np.int64(digits)
        per_unit = np.int64((np.int64(2046) - exponent) << np.int64(52)).view(np.float64)
        error = abs(result - expected) * per_unit
        errors[i] = np.float64(error).view(np.int64)
        steps[i] = np.float64(abs(step) * per_unit).view(np.int64) if is_back else np.int64(-1)
        far |= np.int64(is_nan) | np.int64(error > FAR)
    return far != 0


@njit(nogil=True, error_model="numpy")
def _note_steps(record: Any, steps: Any, x: Any, actual: Any, exact: Any, begin: int) -> None:
    count, low, high = np.int64(0), np.int64(len(steps)), np.int64(-1)
    for i in range(len(steps)):
        is_back = steps[i] >= 0
        count += np.int64(is_back)
        low = min(low, np.int64(i) if is_back else low)
        high = max(high, np.int64(i) if is_back else high)
    if count:
        record[5, 0] += count
        record[5, 1] = min(record[5, 1], x[begin + low], x[begin + high])
        record[5, 2] = max(record[5, 2], x[begin + low], x[begin + high])
        _note_worst(record, 5, steps, x, actual, exact, begin)


@njit(nogil=True, error_model="numpy")
def _note_worst(record: Any, kind: int, errors: Any, x: Any, actual: Any, exact: Any, begin: int) -> None:
    """Note the largest error, if it is the largest one yet. Errors are the bits of float64."""
    largest = np.int64(-1)
    for i in range(len(errors)):
        largest = max(largest, errors[i])
    error = np.int64(largest).view(np.float64)
    if error > record[kind, 3]:
        i = begin
        while errors[i - begin] != largest:
            i += 1
        record[kind, 3], record[kind, 4], record[kind, 5], record[kind, 6] = error, x[i], exact[i], actual[i]


@njit(nogil=True, error_model="numpy")
def _compare_each(
    x: Any, actual: Any, exact: Any, first: int, last: int, digits: int, smallest: int, end: float, record: Any
) -> None:
    """Add inputs one by one, in each way in which their results may be inaccurate."""
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
