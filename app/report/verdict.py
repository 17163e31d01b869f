"""The outcome of a run in sentences: accuracy, speed and failures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

import numpy as np

from app.data.dataset import CLASSES
from app.report.record import Record
from app.report.sections.ranking import headline
from app.report.wording import count, listed, number, seconds, share, spread
from app.run.events import Nonfinite
from app.run.statistics import over_signs
from app.run.summary import p_value


def sentences(record: Record) -> list[str]:
    """Return the sentences about a run, the most important first."""
    failures = [*_wrong_gradients(record), *_failures(record)]
    if record.comparison is not None:
        found = [headline(record.comparison, record.tested_on)]
    else:
        found = [*_accuracy(record), *([] if failures else _disagreement(record)), *_speed(record)]
    return [*failures, *found, *_sample(record), *_dead(record)]


def ratios(record: Record, one: str, other: str) -> list[float]:
    """Return the time ratio of the two operators for each epoch."""
    beside = {(epoch.seed, epoch.epoch): epoch.seconds for epoch in record.epochs_of(other)}
    pairs = [(epoch.seconds, beside.get((epoch.seed, epoch.epoch))) for epoch in record.epochs_of(one)]
    return [a / b for a, b in pairs if a and b]


def _wrong_gradients(record: Record) -> Iterator[str]:
    for one in record.checked:
        if one.state == "wrong":
            yield f"{one.operator}: {one.words}. It was trained all the same, so its figures say nothing about it."


def _failures(record: Record) -> Iterator[str]:
    epochs = record.config.train.epochs
    finished = {operator: record.finished(operator) for operator in record.operators}
    for operator, events in _by_operator(record.nonfinite).items():
        many = f" This happened {len(events):,} times." if len(events) > 1 else ""
        yield f"{operator}: {events[0].where}.{many}"
    if not any(finished.values()):
        yield f"No epoch of {epochs} was finished, so there is little to show."
    elif record.unfinished:
        told = listed([f"{operator} {done}" for operator, done in finished.items()])
        yield f"The run was stopped before its end. Epochs finished, of {epochs}: {told}."
    if lost := [operator for operator in record.operators if diverged(record, operator)]:
        losses = [epoch.test_loss for operator in lost for epoch in record.last(operator)]
        is_now = "NaN or infinite" if None in losses else f"up to {number(max(filter(None, losses)))}"
        guessing = f"guessing gives {number(_GUESSING)}"
        yield f"{listed(lost)} diverged: the loss is {is_now} ({guessing}). Try a smaller train.learning_rate."
    if guessed := [operator for operator in record.operators if is_at_chance(record, operator)]:
        yield f"{listed(guessed)} {'are' if len(guessed) > 1 else 'is'} at chance level ({100 / CLASSES:g} %)."


def _sample(record: Record) -> Iterator[str]:
    if record.start is not None and record.start.data.sample:
        yield "This is the small sample, not the full MNIST; accuracies are lower than the full set gives."


_GUESSING = math.log(CLASSES)
"""The loss of a network that predicts all classes with equal probability."""

_ONES = 0.1135
"""The share of MNIST's test digits that are ones, the most frequent digit."""


def diverged(record: Record, operator: str) -> bool:
    """Return whether an operator's final loss is NaN, infinite, or far above that of guessing."""
    losses = [epoch.test_loss for epoch in record.last(operator)]
    return any(loss is None or loss > 10 * _GUESSING for loss in losses)


def is_at_chance(record: Record, operator: str) -> bool:
    """Return whether an operator's network is no better than always predicting the most frequent class."""
    accuracies = _accuracies(record, operator)
    labels = None if record.answers is None else record.answers.labels
    share = _ONES if labels is None else float(np.bincount(labels).max() / len(labels))
    images = 10_000 if labels is None else len(labels)
    least = share + 2 * math.sqrt(share * (1 - share) / images)
    return bool(accuracies) and statistics.mean(accuracies) <= least


def _by_operator(found: list[Nonfinite]) -> dict[str, list[Nonfinite]]:
    grouped: dict[str, list[Nonfinite]] = {}
    for event in found:
        grouped.setdefault(event.operator, []).append(event)
    return grouped


def _accuracy(record: Record) -> Iterator[str]:
    reached = {o: spread(accuracies) for o in record.operators if (accuracies := _accuracies(record, o))}
    if not reached:
        return
    images = f"{record.tested_on} digits"
    if record.start is not None:
        images = f"{record.start.data.validation or record.start.data.test:,} {images}"
    over = f", the mean over {record.seeds} seeds and their spread" if record.seeds > 1 else ""
    if len(reached) > 1 and len(set(reached.values())) == 1:
        both = " both" if len(reached) == 2 else ""
        yield f"{listed(list(reached))}{both} read {next(iter(reached.values()))} of the {images} right{over}."
    else:
        told = listed([f"{operator} {accuracy}" for operator, accuracy in reached.items()])
        yield f"Of the {images} {'these are' if len(reached) > 1 else 'this is'} read right: {told}{over}."


def _accuracies(record: Record, operator: str) -> list[float]:
    return [epoch.test_accuracy for epoch in record.last(operator) if epoch.test_accuracy is not None]


def _disagreement(record: Record) -> Iterator[str]:
    found = record.answers
    if found is None or len(found.predicted) != 2 or record.seeds > 1 or record.unfinished:
        return
    (one, other), disputed = found.predicted, len(found.disputed())
    if not disputed:
        yield f"They gave the same answer to every one of {count(len(found.labels), 'image')}."
        return
    only_one = int((found.right(one) & ~found.right(other)).sum())
    only_other = int((found.right(other) & ~found.right(one)).sum())
    chance = over_signs(found.right(one).astype(int) - found.right(other))
    judged = "more than chance explains" if chance < 0.01 else "no more than chance explains"
    yield (
        f"They disagree about {count(disputed, 'image')}: {one} alone is right on {only_one}, {other} alone on "
        f"{only_other}. That is {judged} between these two networks (sign test, {p_value(chance)}); whether the "
        "operators differ, more seeds tell."
    )


def _speed(record: Record) -> Iterator[str]:
    times = {o: [e.seconds for e in record.epochs_of(o) if e.seconds] for o in record.operators}
    medians = {operator: statistics.median(of_it) for operator, of_it in times.items() if of_it}
    if not medians:
        return
    told = listed([f"{operator} {seconds(median)}" for operator, median in medians.items()])
    took = f"An epoch takes {told} (the median)"
    if len(medians) == 2 and (pairs := ratios(record, *medians)):
        low, high = min(pairs), max(pairs)
        judged = ", so neither is quicker as far as this run tells" if low <= 1 <= high and len(pairs) > 1 else ""
        between = f", between {low:.2f} and {high:.2f} in {len(pairs)} pairs" if len(pairs) > 1 else ""
        ratio = statistics.median(pairs)
        took += f"; epoch by epoch {next(iter(medians))} takes {ratio:.2f} times as long{between}{judged}"
    yield took + "."


def _dead(record: Record) -> Iterator[str]:
    latest = {(event.operator, event.seed, event.layer): event.dead for event in record.activations}
    shares: dict[str, list[str]] = {}
    for operator in record.operators:
        dead = [value for (name, *_), value in latest.items() if name == operator and value is not None]
        if any(dead):
            shares.setdefault(share(statistics.mean(dead), 1), []).append(operator)
    for dead_share, operators in shares.items():
        image = f"{record.tested_on} image"
        yield f"With {listed(operators)} {dead_share} of the hidden units are dead: zero on every {image}."
