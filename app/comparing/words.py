"""What a comparison says at its end: the table, the operators alone, and in words what differs and what is noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from app.comparing.chance import LEVEL, Estimate
from app.comparing.outcome import Difference, Outcome
from app.training.costs import Cost

FEW = {
    1: "Of other seeds nothing is known: --seeds 5 tells.",
    2: "Two seeds tell little about accuracies: --seeds 5 tells more.",
}


def table(outcomes: Sequence[Outcome], found: Sequence[Difference]) -> list[str]:
    """A line for each operator: its accuracy, the time of its epochs, and how the engine runs it."""
    first = outcomes[0]
    rows = [["operator", "test accuracy", "seconds per epoch", f"ratio to {first.operator}", "engine"]]
    ratios = ["1.00", *(f"{d.speed.mean:.2f}{_between(d.speed, '.2f')}" for d in found)]
    for outcome, ratio in zip(outcomes, ratios, strict=True):
        rows.append([outcome.operator, _accuracy(outcome), f"{outcome.seconds:.3f}", ratio, _engine(outcome)])
    return _aligned(rows)


def alone(costs: Sequence[Cost]) -> list[str]:
    """A line for each operator, with the time of a call for each size of array."""
    if not costs:
        return []
    sizes = sorted({cost.size for cost in costs})
    taken = {(c.operator, c.size): f"{_micro(c.forward)} + {_micro(c.backward)}" for c in costs}
    operators = dict.fromkeys(cost.operator for cost in costs)
    rows = [["numbers", *(f"{size:,}" for size in sizes)]]
    rows += [[operator, *(taken.get((operator, size), "-") for size in sizes)] for operator in operators]
    return ["The operator alone, on one thread: microseconds forward + backward", *_aligned(rows)]


class Verdict(NamedTuple):
    """A sentence about two operators, and its gist in a word: same, differs or noise; '' for how that was found."""

    gist: str
    sentence: str


def verdicts(found: Sequence[Difference], seeds: int) -> list[Verdict]:
    """In words, how each operator differs from the first, and how that was decided."""
    told = [verdict for difference in found for verdict in (_of_accuracy(difference), _of_speed(difference))]
    over = "over the seeds, and over the test images" if seeds > 1 else "for this one seed"
    how = f"Tested {over}; that anything is said to differ by mere chance is at most {LEVEL:.0%} probable."
    return [*told, *(Verdict("", sentence) for sentence in (how, FEW.get(seeds)) if sentence)]


def _of_accuracy(d: Difference) -> Verdict:
    if d.identical:
        return Verdict("same", f"{d.operator} trained to the weights of {d.first}, to the last bit")
    figures = f"{d.accuracy.mean:+.4f}{_between(d.accuracy, '+.4f')}, {_p(d.p_accuracy)}"
    if d.p_accuracy > LEVEL:
        return Verdict("noise", f"between the accuracies of {d.operator} and {d.first}: {figures}")
    than = f"{'more' if d.accuracy.mean > 0 else 'less'} accurate than {d.first}"
    return Verdict("differs", f"{d.operator} is {than}: {figures}")


def _of_speed(d: Difference) -> Verdict:
    figures = f"an epoch takes {d.speed.mean:.2f} times as long{_between(d.speed, '.2f')}, {_p(d.p_speed)}"
    if d.p_speed > LEVEL:
        return Verdict("noise", f"between the speeds of {d.operator} and {d.first}: {figures}")
    than = f"{'slower' if d.speed.mean > 1 else 'faster'} than {d.first}"
    return Verdict("differs", f"{d.operator} is {than}: {figures}")


def printed(told: Sequence[Verdict]) -> list[str]:
    """Verdicts as lines, with their gists in a column."""
    return [f"{gist:7}  {sentence}" if gist else sentence for gist, sentence in told]


def plain(told: Sequence[Verdict]) -> list[str]:
    """Verdicts as sentences that stand by themselves."""
    return [f"{gist.capitalize()}: {sentence}." if gist else sentence for gist, sentence in told]


def _accuracy(outcome: Outcome) -> str:
    mean = f"{statistics.fmean(outcome.accuracies):.4f}"
    return mean if len(outcome.accuracies) < 2 else f"{mean} ± {statistics.stdev(outcome.accuracies):.4f}"


def _engine(outcome: Outcome) -> str:
    """What became of the operator itself: the rest of the network is the same for all."""
    operators, _, custom = outcome.how.partition("; ")
    return custom or operators


def _between(estimate: Estimate, form: str) -> str:
    return f" ({estimate.low:{form}} to {estimate.high:{form}})" if math.isfinite(estimate.high) else ""


def _p(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"


def _micro(seconds: float) -> str:
    micro = seconds * 1e6
    return f"{micro:.1f}" if micro < 100 else f"{micro:,.0f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side: the first and the last of words, to the left, those between to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    words = {0, last} if rows[0][-1] == "engine" else {0}
    cells = [
        [
            cell.ljust(width) if place in words else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
    return ["  ".join(row).rstrip() for row in cells]
