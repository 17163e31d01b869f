"""What a comparison found, as a table: the best operator first, how each differs from the first one, and intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from app.report.axes import Axis, around
from app.report.charts import marker, style_of
from app.report.comparison import Claim, Comparison, Gist
from app.report.markup import tag
from app.report.record import Record
from app.report.wording import count, seconds, share
from app.run.statistics import LEVEL
from app.run.summary import p_value

_FARTHEST = 4.0
"""How many times as long, or as short, an interval of times is drawn at most."""


def table(record: Record, found: Comparison) -> list[Element]:
    """The table, and how it was decided what differs."""
    of, reference = record.tested_on, found.first
    ranked = sorted(found.operators, key=lambda name: -statistics.fmean(found.results[name].compared))
    differences = {difference.operator: difference for difference in found.differences}
    points = _axis([d.accuracy for d in differences.values()], 0.0, 100.0)
    times = _axis([d.speed for d in differences.values()], 1.0, 1.0, log=True)
    at_end = any(result.validation_accuracies and result.test_accuracies for result in found.results.values())
    heads = ["", "operator", f"{of} accuracy", *(["test accuracy, at the end"] if at_end else [])]
    heads += [f"accuracy against {reference}, in points", "an epoch", f"time against {reference}, × as long"]
    rows = []
    for name in ranked:
        result, difference = found.results[name], differences.get(name)
        cells = [tag("td", _rank(found, ranked, name)), tag("th", tag("code", name), scope="row")]
        cells.append(tag("td", _accuracy(result.compared)))
        if at_end:
            cells.append(tag("td", _accuracy(result.test_accuracies)))
        if difference is None:
            cells += [tag("td", "–"), tag("td", seconds(result.seconds_per_epoch)), tag("td", "–")]
        else:
            style = style_of(record.operators.index(name)) if name in record.operators else 0
            cells.append(_claim(difference.accuracy, difference.of_accuracy, points, 0.0, 100.0, style))
            cells.append(tag("td", seconds(result.seconds_per_epoch)))
            cells.append(_claim(difference.speed, difference.speed.gist, times, 1.0, 1.0, style))
        number = record.operators.index(name) if name in record.operators else 0
        rows.append(tag("tr", cells, class_=f"c{style_of(number)}"))
    head = tag("thead", tag("tr", [tag("th", words, scope="col") for words in heads]))
    return [
        tag("div", tag("table", head, tag("tbody", rows), class_="ranking"), class_="scroll", tabindex="0"),
        tag("p", _how(record, found), class_="note"),
    ]


def headline(found: Comparison, tested_on: str) -> str:
    """What a comparison comes to, in a sentence."""
    by_gist: dict[Gist, list[str]] = {}
    for difference in found.differences:
        by_gist.setdefault(difference.of_accuracy, []).append(difference.operator)
    words: dict[Gist, str] = {
        "differs": f"differs from {found.first} in {tested_on} accuracy",
        "same": f"is the same as {found.first}, to the last bit",
        "cannot tell": f"cannot be told from {found.first} by accuracy",
    }
    several = {"differs": "differ", "is": "are"}
    told = []
    for gist, sentence in words.items():
        if names := by_gist.get(gist):
            verb, _, rest = sentence.partition(" ")
            told.append(f"{_listed(names)} {several.get(verb, verb) if len(names) > 1 else verb} {rest}")
    return f"With {count(len(found.seeds), 'seed')}: {'; '.join(told)}."


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _rank(found: Comparison, ranked: Sequence[str], name: str) -> str:
    means = [statistics.fmean(found.results[other].compared) for other in ranked]
    mean = means[ranked.index(name)]
    return f"{means.index(mean) + 1}{'=' if means.count(mean) > 1 else ''}"


def _accuracy(values: Sequence[float]) -> str:
    if not values:
        return "–"
    mean = share(statistics.fmean(values))
    return f"{mean} ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else mean


def _axis(claims: Sequence[Claim], none: float, size: float, log: bool = False) -> Axis:
    ends = [end for claim in claims for end in (claim.low, claim.mean, claim.high) if end is not None]
    if log:  # an interval of few seeds may go far, and is cut off
        ends = [min(max(end, none / _FARTHEST), none * _FARTHEST) for end in ends]
    return around("", [size * end for end in [*ends, none] if math.isfinite(end)], log=log, margin=0.08)


def _claim(claim: Claim, gist: Gist, axis: Axis, none: float, size: float, style: int) -> Element:
    """A cell: what can be said, the figures, and the interval as a line."""
    if gist == "same":
        return tag("td", tag("span", gist, class_="gist same"), tag("small", "the same weights, to the last bit"))
    form = "+.2f" if size > 1 else ".2f"
    figures = f"{size * claim.mean:{form}}"
    if claim.low is not None and claim.high is not None:
        figures += f" ({size * claim.low:{form}} to {size * claim.high:{form}})"
    told = tag("span", gist, class_=f"gist {gist.replace(' ', '-')}")
    return tag("td", told, f" {figures}", tag("small", p_value(claim.p)), _forest(claim, axis, none, size, style))


def _forest(claim: Claim, axis: Axis, none: float, size: float, style: int) -> Element:
    def at(value: float) -> str:
        return f"{100 * min(1.0, max(0.0, axis.place(max(size * value, axis.low)))):.2f}%"

    parts = [tag("line", x1=at(none), x2=at(none), y1="0", y2="20", class_="none")]
    if claim.low is not None and claim.high is not None:
        parts.append(tag("line", x1=at(claim.low), x2=at(claim.high), y1="10", y2="10", class_="reach"))
    parts.append(tag("g", marker(style, at(claim.mean), "10"), class_=f"mark c{style}"))
    return tag("svg", parts, class_="forest", aria_hidden="true")


def _how(record: Record, found: Comparison) -> str:
    over = count(len(found.seeds), "seed")
    spread = ", the mean and the standard deviation over the seeds" if len(found.seeds) > 1 else ""
    told = (
        f"Accuracies are over {over}{spread}. Intervals and p-values are adjusted for all comparisons on this page "
        f"together: family-wise error rate {LEVEL:.0%} (Holm). The dashed line is {found.first}."
    )
    wanted = getattr(record.config, "seeds", len(found.seeds))
    if len(found.seeds) < wanted:
        told += f" The run was stopped after {len(found.seeds)} of {count(wanted, 'seed')}."
    return told if len(found.seeds) > 1 else f"{told} One seed says nothing about others: use --seeds 5."
