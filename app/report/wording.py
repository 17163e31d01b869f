"""Formatting of numbers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

_NOTHING = "no number"
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def share(value: float | None, digits: int = 2) -> str:
    """Format a fraction as a percentage."""
    return _NOTHING if value is None else f"{100 * value:.{digits}f} %"


def spread(values: Sequence[float]) -> str:
    """Format the mean of fractions, and their standard deviation if there are several."""
    mean = share(statistics.fmean(values))
    return f"{mean} ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else mean


def number(value: float | None) -> str:
    """Format a number with four significant digits."""
    return _NOTHING if value is None else f"{value:.4g}"


def seconds(value: float | None) -> str:
    """Format a time with three significant digits in a suitable unit."""
    if value is None:
        return _NOTHING
    size, unit = next(((s, u) for s, u in _SECONDS if value >= s), _SECONDS[-1])
    return f"{value / size:.3g} {unit}" if value < 1000 else f"{value:,.0f} s"


def count(value: int, one: str, more: str = "") -> str:
    """Format a count of things."""
    return f"{value:,} {one if value == 1 else more or one + 's'}"


def listed(words: Sequence[str]) -> str:
    """Join words with commas and "and"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
