"""The verdict at the top of the report, and a card for each operator."""

from __future__ import annotations

import statistics
from xml.etree.ElementTree import Element

from app.report.markup import tag
from app.report.record import Record
from app.report.verdict import sentences
from app.report.wording import number, seconds, share


def section(record: Record) -> Element:
    """The verdict and the cards."""
    words = tag("div", [_sentence(words) for words in sentences(record)], class_="verdict")
    cards = tag("div", [_card(record, operator, n) for n, operator in enumerate(record.operators)], class_="cards")
    return tag(
        "section", tag("h2", "Verdict", id="verdict-title"), words, cards, id="verdict", aria_labelledby="verdict-title"
    )


def _sentence(words: str) -> Element:
    """A sentence; `compare` begins some with what they come to, and two spaces."""
    outcome, gap, rest = words.partition("  ")
    return tag("p", tag("b", outcome), f" {rest}") if gap else tag("p", words)


def _card(record: Record, operator: str, colour: int) -> Element:
    last = record.last(operator)
    accuracy = [epoch.test_accuracy for epoch in last if epoch.test_accuracy is not None]
    losses = [epoch.test_loss for epoch in last if epoch.test_loss is not None]
    at_end = record.test_accuracies(operator)
    times = [epoch.seconds for epoch in record.epochs_of(operator) if epoch.seconds is not None]
    facts = {
        f"{record.tested_on} loss": number(statistics.mean(losses)) if losses else "–",
        "an epoch": seconds(statistics.median(times)) if times else "–",
        **({"test accuracy, at the end": share(statistics.mean(at_end))} if at_end else {}),
        "epochs": f"{record.finished(operator)} of {record.config.train.epochs}",
    }
    how = record.start.engines.get(operator) if record.start is not None else None
    return tag(
        "div",
        tag("h3", tag("code", operator)),
        tag("p", share(statistics.mean(accuracy)) if accuracy else "–", class_="figure"),
        tag("p", f"of the {record.tested_on} digits read right", class_="note"),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()]),
        tag("p", f"Engine: {how}.", class_="note") if how else None,
        class_=f"card c{colour % 8}",
    )
