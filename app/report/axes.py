"""The axes of a chart: positions and labels of ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from app.run import wording

_OUT_OF_SIGHT = 1e100
"""The limit of axes; the difference of the ends must be finite too."""

UNITS = ("", "whole", "share", "seconds")
_LONG = 1e7
"""From this value on, numbers are written with an exponent."""


@dataclass(frozen=True)
class Axis:
    """An axis between two values, formatted by `unit`: one of `UNITS`."""

    label: str
    low: float
    high: float
    unit: str = ""
    log: bool = False

    def place(self, value: float) -> float:
        """Return the position of a value on the axis, from 0 to 1."""
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)

    def marks(self, most: int = 5) -> list[float]:
        """Return round tick values, about `most` of them."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            tens, more = ([f * 10.0**p for p in powers for f in factors] for factors in ((1,), (1, 2, 5)))
            tens, more = ([v for v in values if self.low <= v <= self.high] for values in (tens, more))
            return tens if len(tens) > 2 else more
        least = max((self.high - self.low) / most, 1.0 if self.unit == "whole" else 0.0)
        size = 10.0 ** math.floor(math.log10(least))
        step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= least)
        return [n * step for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]

    def written(self, value: float) -> str:
        """Format a value as a tick label."""
        if self.unit == "share":
            return f"{round(100 * value, 6):g} %"
        if self.unit == "seconds":
            return wording.seconds(value)
        if abs(value) >= _LONG or 0 < abs(value) < 1 / _LONG:
            return f"{value:.4g}"
        return f"{round(value, 9):,.10g}"


def around(label: str, values: Iterable[float], unit: str = "", log: bool = False, margin: float = 0.04) -> Axis:
    """Return an axis that covers all finite values, with a small margin."""
    shown = [value for value in values if abs(value) < _OUT_OF_SIGHT and (value > 0 or not log)]
    low, high = (min(shown), max(shown)) if shown else (1.0, 10.0)
    if log:
        return Axis(label, low / (1 + 5 * margin), high * (1 + 5 * margin), unit, log)
    air = (high - low) * margin or abs(high) / 2 or 0.1
    bottom = max(low - air, -air / 4) if unit == "share" else low - air  # a fraction is not negative
    return Axis(label, bottom, high + air, unit)
