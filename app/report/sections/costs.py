"""The time of each operator by itself against the array size."""

from __future__ import annotations

from app.report.charts import Chart, Line
from app.report.record import Record, over_seeds
from app.report.sections.section import Section

_ABOUT = "The time of one call of the operator alone, on one thread, for several array sizes."


def section(record: Record) -> Section | None:
    """Return the section, or None if the run measured no costs."""
    if not record.costs:
        return None
    charts = [
        _chart(record, "forward", "Forward pass"),
        _chart(record, "backward", "Backward pass"),
    ]
    return Section("costs", "Cost of the operator", _ABOUT, charts)


def _chart(record: Record, which: str, title: str) -> Chart:
    lines = []
    for colour, operator in enumerate(record.operators):
        costs = [cost for cost in record.costs if cost.operator == operator]
        points = over_seeds(costs, lambda cost: cost.size, lambda cost: getattr(cost, which))
        lines.append(Line(operator, points, colour))
    shown = [line for line in lines if line.points]
    x, y = "array elements", "time per call"
    return Chart(f"cost-{which}", title, x, y, shown, "count", "seconds", log_x=True, log_y=True)
