"""The outcome of a run in sentences: accuracy, speed and failures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

import numpy as np

from app.data.dataset import CLASSES
from app.report.sections.ranking import headline
from app.run.comparison import Comparison, time_ratio
from app.run.config import reference_of
from app.run.descriptions import IMAGES
from app.run.events import Checked
from app.run.record import RunRecord
from app.run.statistics import LEVEL
from app.run.summary import failures
from app.run.wording import SAMPLE, count, estimated, listed, seconds, share


def sentences(runs: Sequence[RunRecord], comparison: Comparison | None = None) -> list[str]:
    """Return the sentences about a run or the runs of a comparison, the most important first."""
    wrong = [*_wrong_gradients(runs[0]), *failures(runs), *_at_chance(runs)]
    if comparison is not None:
        results = [headline(comparison)]
    else:
        (run,) = runs
        results = [*_accuracy(run), *([] if wrong else _disagreement(run)), *_speed(run)]
    return [*wrong, *results, *_sample(runs[0]), *_dead(runs[0])]


def _wrong_gradients(run: RunRecord) -> Iterator[str]:
    for one in run.of(Checked):
        if one.state == "wrong":
            yield f"{one.operator}: {one.words}. It was trained anyway; its results say nothing about the operator."


def _at_chance(runs: Sequence[RunRecord]) -> Iterator[str]:
    if guessed := [operator for operator in runs[0].operators if is_at_chance(runs, operator)]:
        yield f"{listed(guessed)} {'are' if len(guessed) > 1 else 'is'} at chance level ({100 / CLASSES:g} %)."


def _sample(run: RunRecord) -> Iterator[str]:
    if run.start is not None and run.start.data.sample:
        yield SAMPLE


_ONES = 0.1135
"""The share of MNIST's test digits that are ones, the most frequent digit."""


def is_at_chance(runs: Sequence[RunRecord], operator: str) -> bool:
    """Return whether an operator's networks are no better than always predicting the most frequent class."""
    accuracies = [accuracy for run in runs if (accuracy := run.accuracy(operator)) is not None]
    labels = None if runs[0].predictions is None else runs[0].predictions.labels
    share = _ONES if labels is None else float(np.bincount(labels).max() / len(labels))
    images = 10_000 if labels is None else len(labels)
    least = share + 2 * math.sqrt(share * (1 - share) / images)
    return bool(accuracies) and statistics.mean(accuracies) <= least


def _accuracy(run: RunRecord) -> Iterator[str]:
    reached = {o: share(accuracy) for o in run.operators if (accuracy := run.accuracy(o)) is not None}
    if not reached:
        return
    images = f"{run.tested_on} digits" if run.start is None else f"{run.images:,} {run.tested_on} digits"
    if len(set(reached.values())) == 1:
        both = " both" if len(reached) == 2 else ""
        classify = "classifies" if len(reached) == 1 else "classify"
        right = next(iter(reached.values()))
        yield f"{listed(list(reached))}{both} {classify} {right} of the {images} correctly."
    else:
        listing = ", ".join(f"{operator} {accuracy}" for operator, accuracy in reached.items())
        yield f"Accuracy on the {images}: {listing}."


def _disagreement(run: RunRecord) -> Iterator[str]:
    predictions = run.predictions
    if predictions is None or len(predictions.predicted) != 2 or not run.complete:
        return
    (one, other), disputed = predictions.predicted, len(predictions.disputed())
    if not disputed:
        yield f"The networks give the same prediction for all {count(len(predictions.labels), 'image')}."
        return
    only_one = int((predictions.right(one) & ~predictions.right(other)).sum())
    only_other = int((predictions.right(other) & ~predictions.right(one)).sum())
    yield (
        f"The networks disagree on {count(disputed, 'image')}: only {one} is right on {only_one}, only {other} on "
        f"{only_other}. These are two networks, not two operators: more seeds show whether operators differ."
    )


def _speed(run: RunRecord) -> Iterator[str]:
    times = {operator: run.timed(operator) for operator in run.operators if run.timed(operator)}
    if not times:
        return
    times_taken = [f"{seconds(run.seconds(operator))} with {operator}" for operator in times]
    sentence = f"An epoch takes {listed(times_taken)}"
    sentence += " (median)" if any(len(epochs) > 1 for epochs in times.values()) else ""
    reference = reference_of(run.config)
    others = [operator for operator in times if operator != reference]
    if len(others) == 1 and reference in times:
        ratio = time_ratio([(times[others[0]], times[reference])])
        sentence += f", a ratio of {estimated(ratio, '.2f')}"
        sentence += f"; the difference is {_significant(ratio.p)}" if math.isfinite(ratio.high) else ""
    yield sentence + "."


def _significant(p: float) -> str:
    return "significant" if p <= LEVEL else "not significant"


def _dead(run: RunRecord) -> Iterator[str]:
    shares: dict[str, list[str]] = {}
    for operator in run.operators:
        if operator in run.descriptions and (dead := run.descriptions[operator].dead):
            shares.setdefault(share(dead, 1), []).append(operator)
    images = IMAGES if run.start is None else min(IMAGES, run.images)
    for dead_share, operators in shares.items():
        zero = f"zero for each of {count(images, f'{run.tested_on} image')}"
        yield f"{dead_share} of the hidden units of {listed(operators)} are dead ({zero})."
