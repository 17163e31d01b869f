"""What a run over several seeds found, and which differences between operators chance does not explain."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np

from app.run.events import Cost, Epoch

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
    groups. One group says nothing of others: its interval is that of its own median, by the differences within it.
    """
    values = np.array(groups, float)
    medians = np.median(values, axis=1)
    of_each, size = np.abs(values - medians[:, None]), values.shape[1]
    # From mean absolute deviation to standard deviation, from that to the error of a mean, and to that of a median.
    within = SQRT_HALF_PI * of_each.mean() / math.sqrt(max(size - 1, 1)) * (SQRT_HALF_PI if size > 2 else 1.0)
    between = float(np.std(medians, ddof=1)) if len(medians) > 1 else 0.0
    freedom = (len(medians) if len(medians) > 1 else size) - 1
    return _students(float(medians.mean()), max(between, within, least_spread), len(medians), freedom, level)


def _students(mean: float, spread: float, count: int, freedom: int, level: float) -> Estimate:
    """The interval around a mean of so many that lie so far apart, and how probable it is where the true one is 0."""
    if freedom < 1:
        return Estimate(mean, -math.inf, math.inf, 1.0)
    error = spread / math.sqrt(count)
    if error == 0.0:
        return Estimate(mean, mean, mean, 1.0 if mean == 0 else 0.0)
    reach = _students_reach(freedom, 1 - level) * error
    angle = math.atan(abs(mean) / error / math.sqrt(freedom))
    return Estimate(mean, mean - reach, mean + reach, max(1 - _students_within(freedom, angle), 0.0))


def _students_within(freedom: int, angle: float) -> float:
    """The probability that |t| < sqrt(freedom) * tan(angle) for Student's t.

    Abramowitz and Stegun, 26.7.3 and 26.7.4. SciPy has it too, but importing `scipy.special` takes 0.1 s of every run.
    """
    cosine, odd = math.cos(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(odd, freedom - 1, 2):
        total += term
        term *= cosine * cosine * (power + 1) / (power + 2)
    total *= math.sin(angle)
    return (angle + total) * 2 / math.pi if odd else total


def _students_reach(freedom: int, probability: float) -> float:
    """The r for which |t| < r has this probability."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _students_within(freedom, middle) < probability else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def over_signs(differences: np.ndarray) -> float:
    """How probable a sum this far from zero is, if the sign of each of these whole numbers is chance.

    Exact. Of numbers that are all -1, 0 or 1 it is McNemar's test. The chances of all sums are the Fourier transform of
    the product of cos(size * angle), which is what one random sign contributes.
    """
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    farthest, reached = int(sizes @ counts), abs(int(differences.sum()))
    if reached == 0:
        return 1.0
    period = 1 << (2 * farthest).bit_length()  # at least the number of sums; a power of two makes the FFT fast
    angles = 2 * np.pi * np.arange(period) / period
    wave = np.ones(period)
    for size, count in zip(sizes, counts, strict=True):
        wave *= np.cos(size * angles) ** int(count)
    chances = np.fft.fft(wave).real / period
    return float(np.clip(2 * chances[reached : farthest + 1].sum(), 0, 1))


def holm_levels(chances: Sequence[float]) -> list[float]:
    """The level of each claim's interval, so that it excludes "no difference" exactly where Holm's method does."""
    levels = [0.0] * len(chances)
    order = sorted(range(len(chances)), key=chances.__getitem__)
    among = len(chances)
    for rank, place in enumerate(order):
        if rank == 0 or chances[order[rank - 1]] * among <= LEVEL:  # from the first that is not claimed on, all are not
            among = len(chances) - rank
        levels[place] = LEVEL / among
    return levels


def holm(chances: Sequence[float]) -> list[float]:
    """The same chances, each as that of a claim among several, by Holm's method."""
    adjusted = [0.0] * len(chances)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[place]))
        adjusted[place] = highest
    return adjusted


PLACE = 0.02
"""How far apart the speeds of equal networks are, in all their epochs: they lie elsewhere in memory."""


@dataclass
class Outcome:
    """An operator's results: an item for each seed."""

    operator: str
    how: str = ""
    """How the engine runs its network."""
    epochs: list[list[Epoch]] = field(default_factory=list)
    right: list[np.ndarray] = field(default_factory=list)
    """Whether the trained network named each test image, or each validation image, correctly."""
    fingerprints: list[str] = field(default_factory=list)
    """Of the trained weights."""
    timed: list[list[Epoch]] = field(default_factory=list)
    """The epochs whose times count: all of them, unless trainings ran side by side."""
    tested: list[float] = field(default_factory=list)
    """The test accuracies of the trained networks, where `right` is about validation images."""

    @property
    def accuracies(self) -> list[float]:
        """The accuracy after the last epoch, with each seed."""
        return [epochs[-1].test_accuracy for epochs in self.epochs]

    @property
    def seconds(self) -> float:
        """The median time of an epoch."""
        return statistics.median(epoch.seconds for epochs in self.timed for epoch in epochs)


@dataclass
class Difference:
    """How an operator differs from the first."""

    operator: str
    first: str
    identical: bool
    """Whether both trained to the same weights, to the last bit, with every seed."""
    accuracy: Estimate
    """By how much it is more accurate."""
    p_images: float
    """How probable so many more right images, or wrong ones, are if it is chance which network is right."""
    speed: Estimate
    """How many times as long its epochs take."""
    p_accuracy: float = 1.0
    p_speed: float = 1.0
    """How probable each is by chance, as a claim among all that are made together."""


def differences(outcomes: Sequence[Outcome]) -> list[Difference]:
    """How every operator differs from the first of them.

    All claims are made together: the p-values are adjusted by Holm's method, and the intervals with them, so that an
    interval excludes "no difference" wherever the p-value does.
    """
    first, *others = outcomes
    found = [_difference(first, other) for other in others]
    # A claim about accuracy has to withstand both the choice of seeds and that of test images.
    by_accuracy = [d for d in found if not d.identical]
    chances = [_either(d.accuracy.p, d.p_images, len(first.epochs)) for d in by_accuracy]
    chances += [d.speed.p for d in found]
    adjusted, levels = holm(chances), holm_levels(chances)
    by_name = {outcome.operator: outcome for outcome in others}
    for d, p, level in zip(by_accuracy, adjusted, levels, strict=False):
        d.p_accuracy, d.accuracy = p, _accuracy(first, by_name[d.operator], level)
    for d, p, level in zip(found, adjusted[len(by_accuracy) :], levels[len(by_accuracy) :], strict=True):
        d.p_speed, d.speed = p, _speed(first, by_name[d.operator], level)
    return found


def _either(p_seeds: float, p_images: float, seeds: int) -> float:
    """With one seed nothing is known of others: what is said is of these networks alone."""
    return max(p_seeds, p_images) if seeds > 1 else p_images


def _difference(first: Outcome, other: Outcome) -> Difference:
    pairs = list(zip(other.right, first.right, strict=True))
    each = np.array([a.astype(int) - b for a, b in pairs])
    return Difference(
        other.operator,
        first.operator,
        other.fingerprints == first.fingerprints,
        _accuracy(first, other),
        over_signs(each.sum(axis=0)),
        _speed(first, other),
    )


def _accuracy(first: Outcome, other: Outcome, level: float = LEVEL) -> Estimate:
    """The difference of the accuracies, over the seeds."""
    rounding = 1 / (math.sqrt(12) * len(first.right[0]))  # accuracies are known to whole images
    return over_units([a - b for a, b in zip(other.accuracies, first.accuracies, strict=True)], rounding, level)


def _speed(first: Outcome, other: Outcome, level: float = LEVEL) -> Estimate:
    """The ratio of the times of paired epochs, over all seeds."""
    return time_ratio(list(zip(other.timed, first.timed, strict=True)), level)


def time_ratio(pairs: Sequence[tuple[Sequence[Epoch], Sequence[Epoch]]], level: float = LEVEL) -> Estimate:
    """The ratio of the times of the same epochs of two operators, which were trained in turns; a pair for each seed."""
    logs = [[math.log(a.seconds / b.seconds) for a, b in zip(*epochs, strict=True)] for epochs in pairs]
    found = over_groups(logs, PLACE, level)
    return Estimate(math.exp(found.mean), math.exp(found.low), _exp(found.high), found.p)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def as_data(
    outcomes: Sequence[Outcome], found: Sequence[Difference], seeds: Sequence[int], costs: Sequence[Cost]
) -> dict[str, Any]:
    """All of it, as data that JSON can hold."""
    return {
        "operators": [outcome.operator for outcome in outcomes],
        "first": outcomes[0].operator,
        "seeds": list(seeds),
        "results": {
            outcome.operator: {
                "engine": outcome.how,
                **_accuracies(outcome),
                "seconds_per_epoch": outcome.seconds if seeds else None,
            }
            for outcome in outcomes
        },
        "differences": [_plain(difference) for difference in found],
        "costs": [msgspec.structs.asdict(cost) for cost in costs],
    }


def _accuracies(outcome: Outcome) -> dict[str, list[float]]:
    if outcome.tested:
        return {"validation_accuracies": outcome.accuracies, "test_accuracies": outcome.tested}
    return {"test_accuracies": outcome.accuracies}


def _plain(difference: Difference) -> dict[str, Any]:
    return {
        "operator": difference.operator,
        "identical": difference.identical,
        "accuracy": {**_interval(difference.accuracy), "p_images": difference.p_images, "p": difference.p_accuracy},
        "speed": {**_interval(difference.speed), "p": difference.p_speed},
    }


def _interval(estimate: Estimate) -> dict[str, Any]:
    low, high = (estimate.low, estimate.high) if math.isfinite(estimate.high) else (None, None)
    return {"mean": estimate.mean, "low": low, "high": high, "p_seeds": estimate.p}
