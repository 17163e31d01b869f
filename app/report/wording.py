"""Numbers as people read them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

_NOTHING = "no number"
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def share(value: float | None, digits: int = 2) -> str:
    """A share in per cent."""
    return _NOTHING if value is None else f"{100 * value:.{digits}f} %"


def spread(values: Sequence[float]) -> str:
    """The mean of shares, and their standard deviation where there are several."""
    mean = share(statistics.fmean(values))
    return f"{mean} ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else mean


def number(value: float | None) -> str:
    """A number with four digits that count."""
    return _NOTHING if value is None else f"{value:.4g}"


def seconds(value: float | None) -> str:
    """A time with three digits that count, in the unit that suits it."""
    if value is None:
        return _NOTHING
    size, unit = next(((s, u) for s, u in _SECONDS if value >= s), _SECONDS[-1])
    return f"{value / size:.3g} {unit}" if value < 1000 else f"{value:,.0f} s"


def count(value: int, one: str, more: str = "") -> str:
    """A number of things."""
    return f"{value:,} {one if value == 1 else more or one + 's'}"


def listed(words: Sequence[str]) -> str:
    """Several words as one would say them."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
