"""The time of each operator by itself."""

from __future__ import annotations

from collections.abc import Sequence

from app.report.markup import tag, with_csv
from app.report.sections.section import Section
from app.run.events import Cost
from app.run.record import RunRecord
from app.run.wording import seconds

_ABOUT = (
    "The time of one call of the operator alone, on one thread, with arrays of the size that it has in the network."
)


def section(runs: Sequence[RunRecord]) -> Section | None:
    """Return the section, or None if no run measured costs."""
    costs = runs[0].of(Cost)
    if not costs:
        return None
    head = tag("thead", tag("tr", [tag("th", heading, scope="col") for heading in ("operator", "forward", "backward")]))
    rows = [
        tag(
            "tr",
            tag("th", tag("code", cost.operator), scope="row"),
            tag("td", seconds(cost.forward)),
            tag("td", seconds(cost.backward)),
        )
        for cost in costs
    ]
    table = tag("table", head, tag("tbody", rows), class_="ranking")
    content = tag("div", with_csv(table, "costs"), class_="scroll", tabindex="0")
    return Section("costs", "Cost of the operator", _ABOUT, (), [content])
