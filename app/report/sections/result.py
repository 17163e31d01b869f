"""The verdict at the top of the report, and below it a card for each operator, or the table of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from app.report.charts import style_of
from app.report.markup import tag
from app.report.sections.ranking import table
from app.report.verdict import sentences
from app.run.comparison import Comparison
from app.run.record import RunRecord
from app.run.wording import number, seconds, share


def section(runs: Sequence[RunRecord], comparison: Comparison | None) -> Element:
    """The section at the top of the page."""
    title = tag("h2", "Verdict", id="verdict-title")
    return tag("section", title, parts(runs, comparison), id="verdict", aria_labelledby="verdict-title")


def parts(runs: Sequence[RunRecord], comparison: Comparison | None) -> list[Element]:
    """The verdict, and the table of a comparison or a card for each operator, for the page and for notebooks."""
    paragraphs = [tag("p", sentence) for sentence in sentences(runs, comparison)]
    first, others = paragraphs[:1], paragraphs[1:]
    if comparison is not None:
        figures = table(comparison)
    else:
        (run,) = runs
        cards = [_card(run, name, number) for number, name in enumerate(run.operators) if run.epochs(name)]
        figures = [tag("div", cards, class_="cards")] if cards else []
        first, others = paragraphs, []
    more = [tag("div", others, class_="verdict more")] if others else []
    return [tag("div", first, class_="verdict"), *figures, *more]


def _card(run: RunRecord, operator: str, colour: int) -> Element:
    last, time = run.last(operator), run.seconds(operator)
    at_end = run.test_accuracy(operator) if run.tested_on == "validation" else None
    facts = {
        f"{run.tested_on} loss": number(last.test_loss) if last is not None else "–",
        "time per epoch": "–" if time is None else seconds(time),
        **({} if at_end is None else {"final test accuracy": share(at_end)}),
        "epochs": f"{len(run.epochs(operator))} of {run.config.train.epochs}",
    }
    how = run.start.engines.get(operator) if run.start is not None else None
    return tag(
        "div",
        tag("h3", tag("code", operator)),
        tag("p", share(run.accuracy(operator)), class_="figure"),
        tag("p", f"of the {run.tested_on} digits classified correctly", class_="note"),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()]),
        tag("p", f"Engine: {how}.", class_="note") if how else None,
        class_=f"card c{style_of(colour)}",
    )
