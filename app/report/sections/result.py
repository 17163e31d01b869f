"""The verdict at the top of the report, and below it a card for each operator, or the table of a comparison."""

from __future__ import annotations

import statistics
from xml.etree.ElementTree import Element

from app.report.charts import style_of
from app.report.markup import tag
from app.report.record import Record
from app.report.sections.ranking import table
from app.report.verdict import sentences
from app.run.wording import number, seconds, share


def section(record: Record) -> Element:
    """The section at the top of the page."""
    title = tag("h2", "Verdict", id="verdict-title")
    return tag("section", title, parts(record), id="verdict", aria_labelledby="verdict-title")


def parts(record: Record) -> list[Element]:
    """The verdict, and the table of a comparison or a card for each operator, for the page and for notebooks."""
    said = [tag("p", words) for words in sentences(record)]
    first, others = said[:1], said[1:]
    if record.comparison is not None:
        figures = table(record, record.comparison)
    else:
        cards = [_card(record, name, number) for number, name in enumerate(record.operators) if record.finished(name)]
        figures = [tag("div", cards, class_="cards")] if cards else []
        first, others = said, []
    more = [tag("div", others, class_="verdict more")] if others else []
    return [tag("div", first, class_="verdict"), *figures, *more]


def _card(record: Record, operator: str, colour: int) -> Element:
    last = record.last(operator)
    accuracy = [epoch.test_accuracy for epoch in last if epoch.test_accuracy is not None]
    losses = [epoch.test_loss for epoch in last if epoch.test_loss is not None]
    at_end = record.test_accuracies(operator)
    times = [epoch.seconds for epoch in record.epochs_of(operator) if epoch.seconds is not None]
    facts = {
        f"{record.tested_on} loss": number(statistics.mean(losses)) if losses else "–",
        "time per epoch": seconds(statistics.median(times)) if times else "–",
        **({"final test accuracy": share(statistics.mean(at_end))} if at_end else {}),
        "epochs": f"{record.finished(operator)} of {record.config.train.epochs}",
    }
    how = record.start.engines.get(operator) if record.start is not None else None
    return tag(
        "div",
        tag("h3", tag("code", operator)),
        tag("p", share(statistics.mean(accuracy)) if accuracy else "–", class_="figure"),
        tag("p", f"of the {record.tested_on} digits classified correctly", class_="note"),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()]),
        tag("p", f"Engine: {how}.", class_="note") if how else None,
        class_=f"card c{style_of(colour)}",
    )
