"""Numerical failures: the first operator that turned finite inputs into NaN or infinity."""

from __future__ import annotations

from app.report.markup import Child, tag
from app.report.record import Record
from app.report.sections.section import Section

_ABOUT = (
    "The step after which the loss or the weights were NaN or infinite, and the first operator that produced such "
    "values."
)


def section(record: Record) -> Section | None:
    """Return the steps whose values were not finite, one for each operator that ended training; None if there are
    none."""
    if not record.nonfinite:
        return None
    parts: list[Child] = []
    for event in record.nonfinite:
        parts += [tag("h3", f"{event.operator}: {event.where}"), tag("pre", event.what, tabindex="0")]
    return Section("failures", "What went wrong", _ABOUT, (), parts)
