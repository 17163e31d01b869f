"""The outcome of a run in words: how well the networks read, which was quicker, and what went wrong."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from app.report.record import Record
from app.report.wording import count, listed, seconds, share


def sentences(record: Record) -> list[str]:
    """What is to be said of a run, the most important first."""
    told = record.verdicts or [*_disagreement(record), *_speed(record)]
    return [*_accuracy(record), *_warnings(record), *told, *_dead(record)]


def ratios(record: Record, one: str, other: str) -> list[float]:
    """The time of each epoch of one operator over that of the same epoch of the other."""
    beside = {(epoch.seed, epoch.epoch): epoch.seconds for epoch in record.epochs_of(other)}
    pairs = [(epoch.seconds, beside.get((epoch.seed, epoch.epoch))) for epoch in record.epochs_of(one)]
    return [a / b for a, b in pairs if a and b]


def _warnings(record: Record) -> Iterator[str]:
    epochs = record.config.train.epochs
    finished = {operator: record.finished(operator) for operator in record.operators}
    if not any(finished.values()):
        yield "No epoch was finished, so there is little to show."
    elif any(done < epochs for done in finished.values()):
        told = listed([f"{operator} {done}" for operator, done in finished.items()])
        yield f"The run was stopped before its end. Epochs finished, of {epochs}: {told}."
    lost = [o for o in record.operators if any(epoch.test_loss is None for epoch in record.last(o))]
    if lost:
        yield f"The loss of {listed(lost)} became NaN or infinite: try a smaller train.learning_rate."
    if record.start is not None and record.start.data.sample:
        yield "This is the small sample, not the full MNIST; accuracies are lower than the full set gives."


def _accuracy(record: Record) -> Iterator[str]:
    reached = {o: _spread(accuracies) for o in record.operators if (accuracies := _accuracies(record, o))}
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


def _spread(values: list[float]) -> str:
    mean = share(statistics.mean(values))
    return f"{mean} ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else mean


def _disagreement(record: Record) -> Iterator[str]:
    found = record.answers
    if found is None or len(found.predicted) != 2 or record.seeds > 1:
        return
    (one, other), disputed = found.predicted, len(found.disputed())
    if not disputed:
        yield f"They gave the same answer to every one of {count(len(found.labels), 'image')}."
        return
    only_one = int((found.right(one) & ~found.right(other)).sum())
    only_other = int((found.right(other) & ~found.right(one)).sum())
    chance = _as_uneven(only_one, only_other)
    judged = "more than chance explains" if chance < 0.01 else "no more than chance explains"
    yield (
        f"They disagree about {count(disputed, 'image')}: {one} alone is right on {only_one}, {other} alone on "
        f"{only_other}. That is {judged} between these two networks (sign test, p = {chance:.2g}); whether the "
        "operators differ, more seeds tell."
    )


def _as_uneven(one: int, other: int) -> float:
    """How probable it is that as many fair coins fall at least as unevenly."""
    total = one + other
    below = sum(math.comb(total, heads) for heads in range(min(one, other) + 1))
    return min(1.0, 2 * below / 2**total)


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
