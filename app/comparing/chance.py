"""Could it be chance? The tests behind every sentence that says that operators differ, or do not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LEVEL = 0.05
"""How probable it may be that any of the differences that are claimed together is chance."""

SQRT_HALF_PI = math.sqrt(math.pi / 2)


class Estimate(NamedTuple):
    """A mean difference, the interval that holds the true one 95 times in 100, and how probable it is without one."""

    mean: float
    low: float
    high: float
    p: float


def over_units(differences: Sequence[float], least_spread: float = 0.0) -> Estimate:
    """What paired differences, each of another seed, say of the mean: Student's t.

    `least_spread` is how far apart they lie at least, though they look closer: by rounding, they may look equal.
    """
    spread = float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0
    return _students(float(np.mean(differences)), max(spread, least_spread), len(differences), len(differences) - 1)


def over_groups(groups: Sequence[Sequence[float]], least_spread: float) -> Estimate:
    """What paired differences, as many in each group, say of the mean of the groups' medians: epochs, of several seeds.

    The medians lie as far apart as they are seen to, but at least as far as the differences within groups make them,
    and at least `least_spread`. Each group may have an offset of its own, so the degrees of freedom are those of the
    groups. One group says nothing of others: its interval is that of its own median, by the differences within it.
    """
    values = np.array(groups, float)
    medians = np.median(values, axis=1)
    of_each, size = np.abs(values - medians[:, None]), values.shape[1]
    # From mean absolute deviation to standard deviation, from that to the error of a mean, and to that of a median.
    within = SQRT_HALF_PI * of_each.mean() / math.sqrt(max(size - 1, 1)) * (SQRT_HALF_PI if size > 2 else 1.0)
    between = float(np.std(medians, ddof=1)) if len(medians) > 1 else 0.0
    freedom = (len(medians) if len(medians) > 1 else size) - 1
    return _students(float(medians.mean()), max(between, within, least_spread), len(medians), freedom)


def _students(mean: float, spread: float, count: int, freedom: int) -> Estimate:
    """The interval around a mean of so many that lie so far apart, and how probable it is where the true one is 0."""
    from scipy.special import stdtr, stdtrit  # imported late: a tenth of a second

    if freedom < 1:
        return Estimate(mean, -math.inf, math.inf, 1.0)
    error = spread / math.sqrt(count)
    if error == 0.0:
        return Estimate(mean, mean, mean, 1.0 if mean == 0 else 0.0)
    reach = float(stdtrit(freedom, 1 - LEVEL / 2)) * error
    return Estimate(mean, mean - reach, mean + reach, float(2 * stdtr(freedom, -abs(mean) / error)))


def over_signs(differences: np.ndarray) -> float:
    """How probable a sum this far from zero is, if the sign of each of these whole numbers is chance.

    Exact. Of numbers that are all -1, 0 or 1 it is McNemar's test. The chances of all sums are the Fourier transform of
    the product of cos(size * angle), which is what one random sign contributes.
    """
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    farthest, reached = int(sizes @ counts), abs(int(differences.sum()))
    if reached == 0:
        return 1.0
    period = 1 << (2 * farthest).bit_length()  # no less than there are sums, and quick to transform
    angles = 2 * np.pi * np.arange(period) / period
    wave = np.ones(period)
    for size, count in zip(sizes, counts, strict=True):
        wave *= np.cos(size * angles) ** int(count)
    chances = np.fft.fft(wave).real / period
    return float(np.clip(2 * chances[reached : farthest + 1].sum(), 0, 1))


def holm(chances: Sequence[float]) -> list[float]:
    """The same chances, each as that of a claim among several, by Holm's method."""
    adjusted = [0.0] * len(chances)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[place]))
        adjusted[place] = highest
    return adjusted
