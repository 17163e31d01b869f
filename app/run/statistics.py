"""Which differences between operators chance does not explain: tests, intervals and their adjustment."""

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


def over_units(differences: Sequence[float], least_spread: float = 0.0, level: float = LEVEL) -> Estimate:
    """What paired differences, each of another seed, say of the mean: Student's t.

    `least_spread` is how far apart they lie at least, though they look closer: by rounding, they may look equal.
    """
    spread = float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0
    return _students(
        float(np.mean(differences)), max(spread, least_spread), len(differences), len(differences) - 1, level
    )


def over_groups(groups: Sequence[Sequence[float]], least_spread: float, level: float = LEVEL) -> Estimate:
    """What paired differences, as many in each group, say of the mean of the groups' medians: epochs, of several seeds.

    The medians lie as far apart as they are seen to, but at least as far as the differences within groups make them,
    and at least `least_spread`. Each group may have an offset of its own, so the degrees of freedom are those of the
    groups. One group says nothing of others: its interval is that of its own median, by the differences within it,
    if there are at least three; two say next to nothing of their spread.
    """
    values = np.array(groups, float)
    medians = np.median(values, axis=1)
    of_each, size = np.abs(values - medians[:, None]), values.shape[1]
    # From mean absolute deviation to standard deviation, from that to the error of a mean, and to that of a median.
    within = SQRT_HALF_PI * of_each.mean() / math.sqrt(max(size - 1, 1)) * (SQRT_HALF_PI if size > 2 else 1.0)
    between = float(np.std(medians, ddof=1)) if len(medians) > 1 else 0.0
    freedom = len(medians) - 1 if len(medians) > 1 else size - 1 if size > 2 else 0
    return _students(float(medians.mean()), max(between, within, least_spread), len(medians), freedom, level)


def _students(mean: float, spread: float, count: int, freedom: int, level: float) -> Estimate:
    """The interval around a mean of so many that lie so far apart, and how probable it is where the true one is 0."""
    if freedom < 1:
        return Estimate(mean, -math.inf, math.inf, 1.0)
    error = spread / math.sqrt(count)
    if error == 0.0:
        return Estimate(mean, mean, mean, 1.0 if mean == 0 else 0.0)
    from scipy.special import stdtr, stdtrit  # imported here because importing SciPy takes 0.1 s

    reach = -float(stdtrit(freedom, level / 2)) * error
    return Estimate(mean, mean - reach, mean + reach, 2 * float(stdtr(freedom, -abs(mean) / error)))


def holm(chances: Sequence[float]) -> list[tuple[float, float]]:
    """Each chance as that of a claim among several, by Holm's method; and the level of the claim's interval, so that it
    excludes "no difference" exactly where the claim is made.
    """
    adjusted = [(0.0, 0.0)] * len(chances)
    highest, among = 0.0, len(chances)
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if highest <= LEVEL:  # from the first that is not claimed on, all are not
            among = len(chances) - rank
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[place]))
        adjusted[place] = highest, LEVEL / among
    return adjusted
