"""How the operators of several runs differ, one run for each seed: accuracies, speeds and tests of both."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from app.errors import AppError, ConfigError, DataError, FileError
from app.run.config import reference_of
from app.run.events import METRICS, Cost, Epoch, Start
from app.run.record import RunRecord
from app.run.resume import changes, check_sources
from app.run.statistics import LEVEL, Estimate, holm, paired_t, paired_t_of_medians

SPREAD = 0.02
"""The least standard deviation of log time ratios: equal networks differ as much, by where they lie in memory."""

Conclusion = Literal["same", "differs", "cannot tell"]


class Claim(msgspec.Struct, frozen=True):
    """A mean difference or ratio, its confidence interval if there are enough seeds, and its p-values."""

    mean: float
    low: float | None = None
    high: float | None = None
    p_seeds: float = 1.0
    """Not adjusted."""
    p: float = 1.0
    """Adjusted for all claims of a comparison, by Holm's method."""

    @property
    def conclusion(self) -> Conclusion:
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
    def of_accuracy(self) -> Conclusion:
        """The conclusion about the accuracies."""
        return "same" if self.identical else self.accuracy.conclusion


@dataclass(frozen=True)
class Comparison:
    """The runs of several seeds, and how each operator differs from the first."""

    runs: list[RunRecord]
    operators: list[str]
    """The operators, beginning with the one that the others are compared with."""
    differences: list[Difference]
    seed_count: int
    """The number of seeds that were to be trained."""

    @property
    def first(self) -> str:
        """The operator that the others are compared with."""
        return self.operators[0]

    @property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return [run.config.seed for run in self.runs]

    @property
    def costs(self) -> list[Cost]:
        """The time of a call of each operator, of the first run that has measured it."""
        return next((costs for run in self.runs if (costs := run.of(Cost))), [])

    def accuracies(self, operator: str) -> list[float]:
        """The accuracy of each run by which operators are compared."""
        return [accuracy for run in self.runs if (accuracy := run.accuracy(operator)) is not None]

    def test_accuracies(self, operator: str) -> list[float]:
        """The accuracy of each run on the test images."""
        return [accuracy for run in self.runs if (accuracy := run.test_accuracy(operator)) is not None]

    @property
    def validated(self) -> bool:
        """Whether operators are compared on validation images."""
        return self.runs[0].tested_on == "validation"

    def seconds(self, operator: str) -> float | None:
        """The median time of an epoch; None if no time can be compared."""
        times = [epoch.seconds for run in self.runs for epoch in run.timed(operator)]
        return statistics.median(times) if times else None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as data."""
        return {
            "runs": [str(run.folder) for run in self.runs],
            "operators": self.operators,
            "first": self.first,
            "seeds": self.seeds,
            "results": {name: self._figures(name) for name in self.operators},
            "differences": msgspec.to_builtins(self.differences),
            "costs": [msgspec.structs.asdict(cost) for cost in self.costs],
        }

    def _figures(self, operator: str) -> dict[str, Any]:
        start = self.runs[0].start
        engine = "" if start is None else start.engines.get(operator, "")
        validation = {"validation_accuracies": self.accuracies(operator)} if self.validated else {}
        accuracies = {**validation, "test_accuracies": self.test_accuracies(operator)}
        return {"engine": engine, **accuracies, "seconds_per_epoch": self.seconds(operator)}


def compare_runs(runs: Sequence[RunRecord], seed_count: int = 0) -> Comparison:
    """Compare the operators of runs, which differ only in the seed; `seed_count` is how many were to be trained."""
    refuse_unlike(runs)
    first = reference_of(runs[0].config)
    operators = [first, *(operator for operator in runs[0].operators if operator != first)]
    return Comparison(list(runs), operators, differences(runs, operators), max(seed_count, len(runs)))


_FREE = {"seed", "output", "report", "costs", "check", "data.source", "data.folder", "data.sources"}
"""Settings that runs which are compared need not share. (The images themselves are compared.)"""


def refuse_unlike(runs: Sequence[RunRecord]) -> None:
    """Refuse to compare runs that have not trained to the end, or differ in more than the seed."""
    for run in runs:
        if run.start is None or not run.weight_hashes:
            raise FileError(f"{run.folder / METRICS} is damaged: it has no hashes of the data and the weights")
        if not run.complete:
            raise AppError(
                f"the run in {run.folder} ended before its last epoch, by an error of an operator. Remove the folder "
                "to train it again, and to see the error"
            )
    first = runs[0]
    for run in runs[1:]:
        pair = f"{first.folder} and {run.folder}"
        settings = [msgspec.to_builtins(one.config) for one in (first, run)]
        changed = [key for key, *_ in changes(*settings) if key not in _FREE]
        if changed:
            raise ConfigError(f"{pair} differ in more than the seed: {', '.join(changed)}; compare runs that do not")
        if _start(first).data.hash != _start(run).data.hash:
            raise DataError(f"{pair} were trained on different images, so they cannot be compared")
        check_sources(_start(first).sources, _start(run).sources, f"the run in {first.folder} trained with it")
    seeds = [run.config.seed for run in runs]
    twice = [str(run.folder) for run in runs if seeds.count(run.config.seed) > 1]
    if twice:
        raise ConfigError(f"{' and '.join(twice)} have the same seed; a comparison needs runs with different ones")


def _start(run: RunRecord) -> Start:
    assert run.start is not None
    return run.start


def differences(runs: Sequence[RunRecord], operators: Sequence[str]) -> list[Difference]:
    """How every operator differs from the first of them: in accuracy, and in speed if epochs were timed one at a time.

    The p-values of all claims are adjusted by Holm's method, and the intervals with them, so that an interval excludes
    "no difference" wherever the p-value does.
    """
    first, *others = operators
    identical = [all(run.weight_hashes[other] == run.weight_hashes[first] for run in runs) for other in others]
    of_accuracy = {  # one seed compares two networks, not two operators
        n: _accuracy(runs, first, other).p for n, other in enumerate(others) if not identical[n] and len(runs) > 1
    }
    pairs = [_timed_pairs(runs, first, other) for other in others]
    of_speed = {n: time_ratio(pair).p for n, pair in enumerate(pairs) if pair}
    adjusted = holm([*of_accuracy.values(), *of_speed.values()])
    accuracies = dict(zip(of_accuracy, adjusted, strict=False))
    speeds = dict(zip(of_speed, adjusted[len(of_accuracy) :], strict=True))
    result = []
    for n, other in enumerate(others):
        p, level = accuracies.get(n, (1.0, LEVEL))
        accuracy = _claim(_accuracy(runs, first, other, level), p)
        speed = None
        if n in speeds:
            p_speed, level_speed = speeds[n]
            speed = _claim(time_ratio(pairs[n], level_speed), p_speed)
        result.append(Difference(other, identical[n], accuracy, speed))
    return result


def _claim(estimate: Estimate, p: float) -> Claim:
    low, high = (estimate.low, estimate.high) if math.isfinite(estimate.high) else (None, None)
    return Claim(estimate.mean, low, high, estimate.p, p)


def _accuracy(runs: Sequence[RunRecord], first: str, other: str, level: float = LEVEL) -> Estimate:
    """The difference of the accuracies, over the seeds."""
    rounding = 1 / (math.sqrt(12) * runs[0].images)  # accuracies are known to whole images
    pairs = [(run.accuracy(other), run.accuracy(first)) for run in runs]
    return paired_t([a - b for a, b in pairs if a is not None and b is not None], rounding, level)


def _timed_pairs(runs: Sequence[RunRecord], first: str, other: str) -> list[tuple[list[Epoch], list[Epoch]]]:
    """The epochs of another operator and of the first, for each run that was timed alone."""
    timed = [(run.timed(other), run.timed(first)) for run in runs]
    return [(a, b) for a, b in timed if a and b]


def time_ratio(pairs: Sequence[tuple[Sequence[Epoch], Sequence[Epoch]]], level: float = LEVEL) -> Estimate:
    """The ratio of the times of the same epochs of two operators, which were trained in turns; a pair for each seed.

    Epochs that only one of them finished do not count, nor do seeds that did not come as far as others.
    """
    logs = [[math.log(a.seconds / b.seconds) for a, b in zip(*epochs, strict=False)] for epochs in pairs]
    estimate = paired_t_of_medians([ratios for ratios in logs if len(ratios) == max(map(len, logs))], SPREAD, level)
    return Estimate(math.exp(estimate.mean), math.exp(estimate.low), _exp(estimate.high), estimate.p)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
