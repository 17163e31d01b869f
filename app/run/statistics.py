"""Which differences between operators are significant: paired t-tests, and Holm's adjustment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LEVEL = 0.05
"""The family-wise error rate."""

SQRT_HALF_PI = math.sqrt(math.pi / 2)


class Estimate(NamedTuple):
    """A mean difference, its confidence interval, and the two-sided p-value of "no difference"."""

    mean: float
    low: float
    high: float
    p: float


def paired_t(differences: Sequence[float], least_spread: float = 0.0, level: float = LEVEL) -> Estimate:
    """Student's paired t-test of differences, one for each seed.

    Their standard deviation is taken to be at least `least_spread`, as rounding can make different values equal.
    """
    spread = float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0
    count = len(differences)
    return _students(float(np.mean(differences)), max(spread, least_spread), count, count - 1, level)


def paired_t_of_medians(groups: Sequence[Sequence[float]], least_spread: float, level: float = LEVEL) -> Estimate:
    """Student's paired t-test of the medians of groups of equally many differences, such as the epochs of each seed.

    The standard deviation of the medians is taken to be at least `least_spread`, and at least what the differences
    within the groups imply. Each group may have an offset of its own, so the degrees of freedom are those of the
    groups. A single group is tested by the differences within it, if there are at least three.
    """
    values = np.array(groups, float)
    medians = np.median(values, axis=1)
    deviations, size = np.abs(values - medians[:, None]), values.shape[1]
    # From mean absolute deviation to standard deviation, from that to the error of a mean, and to that of a median.
    within = SQRT_HALF_PI * deviations.mean() / math.sqrt(max(size - 1, 1)) * (SQRT_HALF_PI if size > 2 else 1.0)
    between = float(np.std(medians, ddof=1)) if len(medians) > 1 else 0.0
    freedom = len(medians) - 1 if len(medians) > 1 else size - 1 if size > 2 else 0
    return _students(float(medians.mean()), max(between, within, least_spread), len(medians), freedom, level)


def _students(mean: float, spread: float, count: int, freedom: int, level: float) -> Estimate:
    """The t-test of a mean of `count` values with a standard deviation and degrees of freedom."""
    if freedom < 1:
        return Estimate(mean, -math.inf, math.inf, 1.0)
    error = spread / math.sqrt(count)
    if error == 0.0:
        return Estimate(mean, mean, mean, 1.0 if mean == 0 else 0.0)
    from scipy.special import stdtr, stdtrit  # imported here because importing SciPy takes 0.1 s

    reach = -float(stdtrit(freedom, level / 2)) * error
    return Estimate(mean, mean - reach, mean + reach, 2 * float(stdtr(freedom, -abs(mean) / error)))


def holm(p_values: Sequence[float]) -> list[tuple[float, float]]:
    """Adjust p-values by Holm's method. Each is returned with the level of its confidence interval, which excludes "no
    difference" exactly where the adjusted p-value is significant.
    """
    adjusted = [(0.0, 0.0)] * len(p_values)
    highest, among = 0.0, len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if highest <= LEVEL:  # after the first that is not significant, none is
            among = len(p_values) - rank
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest, LEVEL / among
    return adjusted
