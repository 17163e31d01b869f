"""Numerical failures: the first operator that turned finite inputs into NaN or infinity."""

from __future__ import annotations

from collections.abc import Sequence

from app.report.markup import Child, tag
from app.report.sections.section import Section
from app.run.events import Nonfinite
from app.run.record import RunRecord

_ABOUT = (
    "The step after which the loss or the weights were NaN or infinite, and the first operator that produced such "
    "values."
)


def section(runs: Sequence[RunRecord]) -> Section | None:
    """Return the steps whose values were not finite, one for each operator that ended training; None if there are
    none."""
    failures = [event for run in runs for event in run.of(Nonfinite)]
    if not failures:
        return None
    parts: list[Child] = []
    for event in failures:
        parts += [tag("h3", f"{event.operator}: {event.where}"), tag("pre", event.what, tabindex="0")]
    return Section("failures", "What went wrong", _ABOUT, (), parts)
