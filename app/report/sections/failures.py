"""Numerical failures: the first operator that turned finite inputs into NaN or infinity."""

from __future__ import annotations

from app.report.markup import Child, tag
from app.report.record import Record
from app.report.sections.section import Section

_SHOWN = 10
_ABOUT = (
    "Steps after which the loss or the weights were NaN or infinite, and the first operator that produced such values."
)


def section(record: Record) -> Section | None:
    """Return the non-finite steps that were examined, if any."""
    events = [event for event in record.nonfinite if event.what]
    if not events:
        return None
    parts: list[Child] = []
    for event in events[:_SHOWN]:
        parts += [tag("h3", f"{event.operator}: {event.where}"), tag("pre", event.what, tabindex="0")]
    if len(events) > _SHOWN:
        parts.append(tag("p", f"{len(events) - _SHOWN:,} more are in metrics.jsonl.", class_="note"))
    return Section("failures", "What went wrong", _ABOUT, (), parts)
