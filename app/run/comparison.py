"""What a comparison found: the record in comparison.json, which the summary, the report and notebooks render."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from app.errors import FileError
from app.files import LARGEST, read_file
from app.run.events import Cost, Epoch
from app.run.folder import COMPARISON
from app.run.statistics import LEVEL, Estimate, holm, over_groups, over_units

if TYPE_CHECKING:
    from app.run.training import Trained

PLACE = 0.02
"""How far apart the speeds of equal networks are, in all their epochs: they lie elsewhere in memory."""
"""The maximum size of the file in bytes."""

Accuracy = Annotated[float, msgspec.Meta(ge=0, le=1)]
Gist = Literal["same", "differs", "cannot tell"]


Outcomes = Mapping[str, Sequence["Trained"]]
"""The trainings of each operator with the seeds that all operators finished."""


class Claim(msgspec.Struct, frozen=True):
    """A mean difference or ratio, its interval if there are enough seeds, and how probable it is by chance."""

    mean: float
    low: float | None = None
    high: float | None = None
    p_seeds: float = 1.0
    """As the only claim."""
    p: float = 1.0
    """As a claim among all that are made together."""

    @property
    def gist(self) -> Gist:
        """The conclusion: differs or unclear."""
        return "differs" if self.p <= LEVEL else "cannot tell"


class Difference(msgspec.Struct, frozen=True):
    """How an operator differs from the first."""

    operator: str
    identical: bool
    """Whether both trained to the same weights, to the last bit, with every seed."""
    accuracy: Claim
    """By how much it is more accurate."""
    speed: Claim | None = None
    """How many times as long its epochs take; None where trainings ran at the same time."""

    @property
    def of_accuracy(self) -> Gist:
        """The conclusion about the accuracies."""
        return "same" if self.identical else self.accuracy.gist


class OperatorResult(msgspec.Struct, frozen=True):
    """The figures of an operator, with an accuracy per seed."""

    engine: str = ""
    """How the engine runs its network."""
    validation_accuracies: list[Accuracy] | UnsetType = UNSET
    """The accuracies by which operators are compared, if images were held back."""
    test_accuracies: list[Accuracy] = []
    seconds_per_epoch: float | None = None

    @property
    def compared(self) -> list[float]:
        """The accuracies by which operators are compared."""
        return self.validation_accuracies or self.test_accuracies


class Comparison(msgspec.Struct, frozen=True):
    """The complete comparison. `seeds` are those that all operators finished."""

    operators: list[str]
    first: str
    seeds: list[int]
    results: dict[str, OperatorResult]
    differences: list[Difference]
    costs: list[dict[str, Any]] = []
    verdicts: list[str] = []


def compare(
    outcomes: Outcomes, seeds: Sequence[int], costs: Sequence[Cost] = (), one_at_a_time: bool = True
) -> Comparison:
    """Compare the outcomes with these seeds. Speeds are compared if the trainings ran one at a time."""
    return Comparison(
        list(outcomes),
        next(iter(outcomes)),
        list(seeds),
        {name: _result(trained, one_at_a_time) for name, trained in outcomes.items()},
        differences(outcomes, one_at_a_time) if seeds else [],
        [msgspec.structs.asdict(cost) for cost in costs],
    )


def _result(trained: Sequence[Trained], one_at_a_time: bool) -> OperatorResult:
    seconds = [epoch.seconds for one in trained for epoch in one.epochs if one_at_a_time]
    tested = [one.tested.accuracy for one in trained if one.tested is not None]
    return OperatorResult(
        trained[0].how if trained else "",
        [one.accuracy for one in trained] if tested else UNSET,
        tested or [one.accuracy for one in trained],
        statistics.median(seconds) if seconds else None,
    )


def differences(outcomes: Outcomes, one_at_a_time: bool = True) -> list[Difference]:
    """How every operator differs from the first of them: in accuracy, and in speed if trainings ran one at a time.

    All claims are made together: the p-values are adjusted by Holm's method, and the intervals with them, so that an
    interval excludes "no difference" wherever the p-value does.
    """
    names, (first, *others) = list(outcomes)[1:], outcomes.values()
    identical = [all(a.fingerprint == b.fingerprint for a, b in _pairs(first, other)) for other in others]
    of_accuracy = {  # one seed compares two networks, not two operators
        n: _accuracy(first, other).p for n, other in enumerate(others) if not identical[n] and len(first) > 1
    }
    speeds = [_speed(first, other).p for other in others if one_at_a_time]
    chances = [*of_accuracy.values(), *speeds]
    judged = holm(chances)
    accuracies = dict(zip(of_accuracy, judged, strict=False))
    found = []
    for n, other in enumerate(others):
        p, level = accuracies.get(n, (1.0, LEVEL))
        accuracy = _claim(_accuracy(first, other, level), p)
        speed = None
        if one_at_a_time:
            p_speed, level_speed = judged[len(of_accuracy) + n]
            speed = _claim(_speed(first, other, level_speed), p_speed)
        found.append(Difference(names[n], identical[n], accuracy, speed))
    return found


def _pairs(first: Sequence[Trained], other: Sequence[Trained]) -> list[tuple[Trained, Trained]]:
    """The trainings of another operator and of the first with the same seeds."""
    return list(zip(other, first, strict=True))


def _claim(estimate: Estimate, p: float) -> Claim:
    low, high = (estimate.low, estimate.high) if math.isfinite(estimate.high) else (None, None)
    return Claim(estimate.mean, low, high, estimate.p, p)


def _accuracy(first: Sequence[Trained], other: Sequence[Trained], level: float = LEVEL) -> Estimate:
    """The difference of the accuracies, over the seeds."""
    rounding = 1 / (math.sqrt(12) * first[0].images)  # accuracies are known to whole images
    return over_units([a.accuracy - b.accuracy for a, b in _pairs(first, other)], rounding, level)


def _speed(first: Sequence[Trained], other: Sequence[Trained], level: float = LEVEL) -> Estimate:
    """The ratio of the times of paired epochs, over all seeds."""
    return time_ratio([(a.epochs, b.epochs) for a, b in _pairs(first, other)], level)


def time_ratio(pairs: Sequence[tuple[Sequence[Epoch], Sequence[Epoch]]], level: float = LEVEL) -> Estimate:
    """The ratio of the times of the same epochs of two operators, which were trained in turns; a pair for each seed.

    Epochs that only one of them finished do not count, nor do seeds that did not come as far as others.
    """
    logs = [[math.log(a.seconds / b.seconds) for a, b in zip(*epochs, strict=False)] for epochs in pairs]
    found = over_groups([of_it for of_it in logs if len(of_it) == max(map(len, logs))], PLACE, level)
    return Estimate(math.exp(found.mean), math.exp(found.low), _exp(found.high), found.p)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def read(folder: Path) -> Comparison | None:
    """Read the comparison in a run's folder; None if there is none or no seed was finished."""
    path = folder / COMPARISON
    if not os.path.lexists(path):
        return None
    try:
        found = msgspec.json.decode(read_file(path, LARGEST["comparison"], links=False), type=Comparison)
        if not found.seeds:
            return None
        whole = {found.first, *found.operators, *(d.operator for d in found.differences)} <= found.results.keys()
        if not (whole and found.differences) or any(
            len(found.results[name].compared) != len(found.seeds) for name in found.operators
        ):
            raise msgspec.ValidationError("an operator has no results, or not one for each seed")
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        raise FileError(f"{path} is damaged or was edited: {error}") from error
    return found
