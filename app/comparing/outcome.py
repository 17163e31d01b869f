"""What a comparison found: the results of each operator over all seeds, and how each differs from the first."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.comparing.chance import Estimate, holm, over_groups, over_signs, over_units
from app.training.costs import Cost
from app.training.watcher import Epoch

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
    """Whether the trained network named each test image rightly."""
    fingerprints: list[str] = field(default_factory=list)
    """Of the trained weights."""

    def shorten(self, seeds: int) -> None:
        """Forget what came of any seed after so many."""
        for results in (self.epochs, self.right, self.fingerprints):
            del results[seeds:]

    @property
    def accuracies(self) -> list[float]:
        """The test accuracy after the last epoch, with each seed."""
        return [epochs[-1].accuracy for epochs in self.epochs]

    @property
    def seconds(self) -> float:
        """The median time of an epoch."""
        return statistics.median(epoch.seconds for epochs in self.epochs for epoch in epochs)


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
    """How every operator differs from the first of them."""
    first, *others = outcomes
    found = [_difference(first, other) for other in others]
    # Beside the luck of the seeds there is that of the test images: what is claimed has to withstand both.
    by_accuracy = {id(d): _either(d.accuracy.p, d.p_images, len(first.epochs)) for d in found if not d.identical}
    adjusted = holm([*by_accuracy.values(), *(d.speed.p for d in found)])
    for place, difference in enumerate(d for d in found if not d.identical):
        difference.p_accuracy = adjusted[place]
    for difference, p in zip(found, adjusted[len(by_accuracy) :], strict=True):
        difference.p_speed = p
    return found


def _either(p_seeds: float, p_images: float, seeds: int) -> float:
    """With one seed nothing is known of others: what is said is of these networks alone."""
    return max(p_seeds, p_images) if seeds > 1 else p_images


def _difference(first: Outcome, other: Outcome) -> Difference:
    pairs = list(zip(other.right, first.right, strict=True))
    each = np.array([a.astype(int) - b for a, b in pairs])
    rounding = 1 / (math.sqrt(12) * each.shape[1])  # accuracies are known to whole images
    return Difference(
        other.operator,
        first.operator,
        other.fingerprints == first.fingerprints,
        over_units([a - b for a, b in zip(other.accuracies, first.accuracies, strict=True)], rounding),
        over_signs(each.sum(axis=0)),
        _times(first, other),
    )


def _times(first: Outcome, other: Outcome) -> Estimate:
    """The ratio of the times of paired epochs, over all seeds."""
    logs = [
        [math.log(a.seconds / b.seconds) for a, b in zip(*epochs, strict=True)]
        for epochs in zip(other.epochs, first.epochs, strict=True)
    ]
    found = over_groups(logs, PLACE)
    return Estimate(math.exp(found.mean), _exp(found.low), _exp(found.high), found.p)


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
                "test_accuracies": outcome.accuracies,
                "seconds_per_epoch": outcome.seconds if seeds else None,
            }
            for outcome in outcomes
        },
        "differences": [_plain(difference) for difference in found],
        "costs": [cost._asdict() for cost in costs],
    }


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
