"""The table of a comparison: operators ranked by accuracy, differences from the first one, and intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from app.report.axes import Axis, around
from app.report.charts import marker, style_of
from app.report.markup import tag, with_csv
from app.run.comparison import Claim, Comparison, Conclusion
from app.run.wording import ONE_SEED, count, estimated, how_tested, listed, missing_seeds, p_value, seconds, spread

_FOREST = 180
"""The width of the picture of an interval."""
_FARTHEST = 4.0
"""The largest time ratio, or its inverse, that an interval is drawn to."""


@dataclass(frozen=True)
class _Column:
    """A column of claims: the value of no difference, the scale and the format."""

    axis: Axis
    none: float
    size: float
    form: str

    def at(self, value: float) -> float:
        """Return the position of a value, from 0 to `_FOREST`."""
        share = self.axis.place(max(self.size * value, self.axis.low))
        return round(_FOREST * min(1.0, max(0.0, share)), 1)

    def written(self, claim: Claim) -> str:
        """Format a claim's mean and interval."""
        return estimated(claim, self.form, self.size)


def table(comparison: Comparison) -> list[Element]:
    """Return the table and a description of the test."""
    ranked = sorted(comparison.operators, key=lambda name: -statistics.fmean(comparison.accuracies(name)))
    points = _Column(_axis([d.accuracy for d in comparison.differences], 0.0, 100.0), 0.0, 100.0, "+.2f")
    times = _Column(
        _axis([d.speed for d in comparison.differences if d.speed is not None], 1.0, 1.0, log=True), 1.0, 1.0, ".2f"
    )
    at_end, operators = comparison.validated, comparison.runs[0].operators
    heads = ["", "operator", f"{comparison.runs[0].tested_on} accuracy", *(["final test accuracy"] if at_end else [])]
    heads += [
        f"accuracy difference from {comparison.first}, in points",
        "time per epoch",
        f"time ratio to {comparison.first}",
    ]
    rows = []
    for name in ranked:
        style = style_of(operators.index(name))
        accuracy, time = _claims(comparison, name, points, times, style)
        cells = [
            tag("td", _rank(comparison, ranked, name)),
            tag("th", tag("code", name), scope="row"),
            tag("td", spread(comparison.accuracies(name))),
            *([tag("td", spread(comparison.test_accuracies(name)))] if at_end else []),
            accuracy,
            tag("td", _time(comparison.seconds(name))),
            time,
        ]
        rows.append(tag("tr", cells, class_=f"c{style}"))
    head = tag("thead", tag("tr", [tag("th", heading, scope="col") for heading in heads]))
    ranking = tag("table", head, tag("tbody", rows), class_="ranking")
    return [
        tag("div", with_csv(ranking, "comparison"), class_="scroll", tabindex="0"),
        tag("p", _how(comparison), class_="note"),
    ]


def _time(value: float | None) -> str:
    return "not compared" if value is None else seconds(value)


def headline(comparison: Comparison) -> str:
    """Summarise a comparison in a sentence."""
    tested_on = comparison.runs[0].tested_on
    by_conclusion: dict[Conclusion, list[str]] = {}
    for difference in comparison.differences:
        by_conclusion.setdefault(difference.of_accuracy, []).append(difference.operator)
    predicates: dict[Conclusion, str] = {
        "differs": f"differs from {comparison.first} in {tested_on} accuracy",
        "same": f"has the same weights as {comparison.first}, bit for bit",
        "cannot tell": f"does not differ significantly from {comparison.first} in {tested_on} accuracy",
    }
    several = {"differs": "differ", "has": "have", "does": "do"}
    claims = []
    for conclusion, sentence in predicates.items():
        names = by_conclusion.get(conclusion, [])
        if names and (conclusion == "same" or len(comparison.seeds) > 1):
            verb, _, rest = sentence.partition(" ")
            claims.append(f"{listed(names)} {several.get(verb, verb) if len(names) > 1 else verb} {rest}")
    sentences = [f"With {count(len(comparison.seeds), 'seed')}: {'; '.join(claims)}."] if claims else []
    return " ".join([*sentences, *([ONE_SEED] if len(comparison.seeds) == 1 else [])])


def _rank(comparison: Comparison, ranked: Sequence[str], name: str) -> str:
    means = [statistics.fmean(comparison.accuracies(other)) for other in ranked]
    mean = means[ranked.index(name)]
    return f"{means.index(mean) + 1}{'=' if means.count(mean) > 1 else ''}"


def _axis(claims: Sequence[Claim], none: float, size: float, log: bool = False) -> Axis:
    ends = [end for claim in claims for end in (claim.low, claim.mean, claim.high) if end is not None]
    if log:  # an interval from few seeds may be wide, and is clipped
        ends = [min(max(end, none / _FARTHEST), none * _FARTHEST) for end in ends]
    return around("", [size * end for end in [*ends, none] if math.isfinite(end)], log=log, margin=0.08)


def _claims(comparison: Comparison, name: str, points: _Column, times: _Column, style: int) -> tuple[Element, Element]:
    """The cells that say how an operator differs from the first; empty for the first itself."""
    for difference in comparison.differences:
        if difference.operator == name:
            accuracy = _claim(difference.accuracy, difference.of_accuracy, points, style)
            if difference.speed is None:
                return accuracy, tag("td", "not compared")
            return accuracy, _claim(difference.speed, difference.speed.conclusion, times, style)
    return tag("td", "–"), tag("td", "–")


def _claim(claim: Claim, conclusion: Conclusion, column: _Column, style: int) -> Element:
    """Return a cell: the conclusion, the numbers, and the interval as a line."""
    badge = tag("span", conclusion, class_=f"conclusion {conclusion.replace(' ', '-')}")
    if conclusion == "same":
        return tag("td", badge, tag("small", "the same weights, bit for bit"))
    none = column.at(column.none / column.size)
    parts = [tag("line", x1=none, x2=none, y1=0, y2=20, class_="none")]
    if claim.low is not None and claim.high is not None:
        parts.append(tag("line", x1=column.at(claim.low), x2=column.at(claim.high), y1=10, y2=10, class_="reach"))
    parts.append(tag("g", marker(style, column.at(claim.mean), 10), class_=f"mark c{style}"))
    picture = tag("svg", parts, class_="forest", viewBox=f"0 0 {_FOREST} 20", aria_hidden="true")
    p = "" if claim.low is None else p_value(claim.p)
    return tag("td", badge, f" {column.written(claim)}", tag("small", p), picture)


def _how(comparison: Comparison) -> str:
    seeds = len(comparison.seeds)
    sentences = [f"Accuracies are means and standard deviations over {seeds} seeds."] if seeds > 1 else []
    sentences += [how_tested(seeds), f"The dashed line marks {comparison.first}."]
    sentences += [missing_seeds(seeds, comparison.seed_count)] if seeds < comparison.seed_count else []
    return " ".join(sentences)
