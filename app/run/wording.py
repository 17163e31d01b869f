"""Numbers and sentences that the terminal, notebooks and the report share."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from app.data.dataset import CLASSES
from app.run.comparison import Claim
from app.run.statistics import LEVEL, Estimate

SAMPLE = "This is a small sample of MNIST; accuracies are lower than with the full data set."
NOT_COMPARED = "Speeds are not compared, because trainings ran at the same time."
ONE_SEED = "One seed compares two networks, not two operators: use --seeds 5."
GUESSING = math.log(CLASSES)
"""The loss of a network that predicts all classes with equal probability."""
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
    rounded = float(f"{value:.3g}")  # 0.9996 s is 1 s, and not 1e+03 ms
    size, unit = next(((s, u) for s, u in _SECONDS if rounded >= s), _SECONDS[-1])
    return f"{rounded / size:.3g} {unit}" if rounded < 1000 else f"{value:,.0f} s"


def count(value: int, one: str, more: str = "") -> str:
    """Format a count of things."""
    return f"{value:,} {one if value == 1 else more or one + 's'}"


def listed(words: Sequence[str]) -> str:
    """Join words with commas and "and"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def estimated(estimate: Estimate | Claim, form: str, size: float = 1.0) -> str:
    """Format a mean and its interval, if it has one, in a unit: 1 for fractions, 100 for percentage points."""
    mean, low, high = estimate.mean, estimate.low, estimate.high
    text = _bound(size * mean, form)
    if low is None or high is None or not math.isfinite(high):
        return text
    return f"{text} ({_bound(size * low, form)} to {_bound(size * high, form)})"


def _bound(value: float, form: str) -> str:
    """Format a number. With few seeds the upper end of a ratio may have 20 digits."""
    return f"{value:{form}}" if value < 1000 else "over 1000"


def tested(claim: Claim, form: str) -> str:
    """Format a claim and its p-value; a claim that could not be tested has none."""
    text = estimated(claim, form)
    return text if claim.low is None else f"{text}, {p_value(claim.p)}"


def p_value(p: float) -> str:
    """Format a p-value; never as zero."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"


def missing_seeds(finished: int, seeds: int) -> str:
    """Return how many seeds of a comparison are trained, if some are missing."""
    return f"Only {finished} of {count(seeds, 'seed')} are trained."


def has_diverged(loss: float | None) -> bool:
    """Return whether a loss is NaN, infinite, or far above that of guessing."""
    return loss is None or not loss <= 10 * GUESSING


def diverged(losses: Mapping[str, Sequence[float | None]]) -> list[str]:
    """Return a sentence about the operators whose final losses, one for each seed, diverged; none if all are fine."""
    lost = {operator: losses_of for operator, losses_of in losses.items() if any(map(has_diverged, losses_of))}
    if not lost:
        return []
    finite_losses = [
        loss for losses_of in lost.values() for loss in losses_of if loss is not None and math.isfinite(loss)
    ]
    is_now = (
        f"up to {number(max(finite_losses))}"
        if len(finite_losses) == sum(map(len, lost.values()))
        else "NaN or infinite"
    )
    guessing = f"chance level is {number(GUESSING)}"
    return [f"{listed(list(lost))} diverged: the loss is {is_now} ({guessing}). Try a smaller train.learning_rate."]


def how_tested(seeds: int) -> str:
    """Return how the differences of a comparison were tested."""
    over = "seeds" if seeds > 1 else "the epochs of one seed"
    return (
        f"Tested over {over} (paired t-tests). p-values and intervals are adjusted for a family-wise error rate of "
        f"{LEVEL:.0%} (Holm)."
    )
