"""The outcome of a run in sentences: accuracy, speed and failures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

import numpy as np

from app.data.dataset import CLASSES
from app.report.record import Record
from app.report.sections.ranking import headline
from app.run.comparison import time_ratio
from app.run.events import Epoch
from app.run.profiles import IMAGES
from app.run.statistics import LEVEL
from app.run.wording import (
    NOTHING_FINISHED,
    SAMPLE,
    count,
    diverged,
    estimated,
    listed,
    seconds,
    share,
    spread,
    unfinished,
    unfinished_seeds,
)


def sentences(record: Record) -> list[str]:
    """Return the sentences about a run, the most important first."""
    failures = [*_wrong_gradients(record), *_failures(record)]
    if record.comparison is not None:
        found = [headline(record.comparison, record.tested_on)]
    else:
        found = [*_accuracy(record), *([] if failures else _disagreement(record)), *_speed(record)]
    return [*failures, *found, *_sample(record), *_dead(record)]


def _wrong_gradients(record: Record) -> Iterator[str]:
    for one in record.checked:
        if one.state == "wrong":
            yield f"{one.operator}: {one.words}. It was trained anyway; its results say nothing about the operator."


def _failures(record: Record) -> Iterator[str]:
    epochs = record.config.train.epochs
    finished = {operator: record.finished(operator) for operator in record.operators}
    yield from (f"{event.operator}: {event.where}." for event in record.nonfinite)
    if not any(finished.values()):
        yield NOTHING_FINISHED
    elif record.unfinished:
        yield unfinished(finished, epochs)
    elif record.comparison is None:  # a comparison says so itself
        done, wanted = min(len(record.last(one)) for one in record.operators), getattr(record.config, "seeds", 1)
        if done < wanted:
            yield unfinished_seeds(done, wanted)
    losses = {operator: [epoch.test_loss for epoch in record.last(operator)] for operator in record.operators}
    yield from diverged(losses)
    if guessed := [operator for operator in record.operators if is_at_chance(record, operator)]:
        yield f"{listed(guessed)} {'are' if len(guessed) > 1 else 'is'} at chance level ({100 / CLASSES:g} %)."


def _sample(record: Record) -> Iterator[str]:
    if record.start is not None and record.start.data.sample:
        yield SAMPLE


_ONES = 0.1135
"""The share of MNIST's test digits that are ones, the most frequent digit."""


def is_at_chance(record: Record, operator: str) -> bool:
    """Return whether an operator's network is no better than always predicting the most frequent class."""
    accuracies = _accuracies(record, operator)
    labels = None if record.answers is None else record.answers.labels
    share = _ONES if labels is None else float(np.bincount(labels).max() / len(labels))
    images = 10_000 if labels is None else len(labels)
    least = share + 2 * math.sqrt(share * (1 - share) / images)
    return bool(accuracies) and statistics.mean(accuracies) <= least


def _accuracy(record: Record) -> Iterator[str]:
    reached = {o: spread(accuracies) for o in record.operators if (accuracies := _accuracies(record, o))}
    if not reached:
        return
    images = f"{record.tested_on} digits"
    if record.start is not None:
        images = f"{record.start.data.validation or record.start.data.test:,} {images}"
    counts = sorted({len(_accuracies(record, operator)) for operator in reached})
    seeds = " to ".join(map(str, counts))
    over = f" (mean ± standard deviation over {seeds} seeds)" if counts[-1] > 1 else ""
    if len(set(reached.values())) == 1:
        both = " both" if len(reached) == 2 else ""
        classify = "classifies" if len(reached) == 1 else "classify"
        right = next(iter(reached.values()))
        yield f"{listed(list(reached))}{both} {classify} {right} of the {images} correctly{over}."
    else:
        listing = ", ".join(f"{operator} {accuracy}" for operator, accuracy in reached.items())
        yield f"Accuracy on the {images}: {listing}{over}."


def _accuracies(record: Record, operator: str) -> list[float]:
    return [epoch.test_accuracy for epoch in record.last(operator) if epoch.test_accuracy is not None]


def _disagreement(record: Record) -> Iterator[str]:
    found = record.answers
    if found is None or len(found.predicted) != 2 or record.seeds > 1 or record.unfinished:
        return
    (one, other), disputed = found.predicted, len(found.disputed())
    if not disputed:
        yield f"The networks give the same answer for all {count(len(found.labels), 'image')}."
        return
    only_one = int((found.right(one) & ~found.right(other)).sum())
    only_other = int((found.right(other) & ~found.right(one)).sum())
    yield (
        f"The networks disagree on {count(disputed, 'image')}: only {one} is right on {only_one}, only {other} on "
        f"{only_other}. These are two networks, not two operators: more seeds show whether operators differ."
    )


def _speed(record: Record) -> Iterator[str]:
    times = {o: [e.seconds for e in record.epochs_of(o) if e.seconds] for o in record.operators}
    medians = {operator: statistics.median(of_it) for operator, of_it in times.items() if of_it}
    if not medians:
        return
    times_taken = [f"{seconds(median)} with {operator}" for operator, median in medians.items()]
    sentence = f"An epoch takes {listed(times_taken)}"
    sentence += " (median)" if any(len(of_it) > 1 for of_it in times.values()) else ""
    one, *others = (_by_seed(record, operator) for operator in medians)
    if len(others) == 1 and (pairs := [(one[seed], others[0][seed]) for seed in one if seed in others[0]]):
        found = time_ratio(pairs)
        sentence += f", a ratio of {estimated(found, '.2f')}"
        sentence += f"; the difference is {_significant(found.p)}" if math.isfinite(found.high) else ""
    yield sentence + "."


def _by_seed(record: Record, operator: str) -> dict[int | None, list[Epoch]]:
    found: dict[int | None, list[Epoch]] = {}
    for epoch in filter(lambda epoch: epoch.seconds, record.epochs_of(operator)):
        found.setdefault(epoch.seed, []).append(epoch)
    return found


def _significant(p: float) -> str:
    return "significant" if p <= LEVEL else "not significant"


def _dead(record: Record) -> Iterator[str]:
    shares: dict[str, list[str]] = {}
    for operator in record.operators:
        if operator in record.profiles and (dead := record.profiles[operator].dead):
            shares.setdefault(share(dead, 1), []).append(operator)
    data = None if record.start is None else record.start.data
    images = IMAGES if data is None else min(IMAGES, data.validation or data.test)
    for dead_share, operators in shares.items():
        zero = f"zero for each of {count(images, f'{record.tested_on} image')}"
        yield f"{dead_share} of the hidden units of {listed(operators)} are dead ({zero})."
