"""The curves of a run as one image."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from app.report.charts import Chart, style_of
from app.report.record import Record
from app.report.sections import curves

COLOURS = ("#0063a6", "#bd4b00", "#00775a", "#a03c78", "#7a5b00", "#4a4fc4", "#a3262a", "#4d5560")
"""The page's colours for a light background."""
DASHES: tuple[Any, ...] = ("-", (0, (4, 3)), (0, (1, 2)), (0, (6, 2, 1, 2)))


def curves_png(record: Record) -> bytes:
    """Loss and accuracy against epochs, and accuracy against time, side by side."""
    section = curves.section(record)
    charts = section.charts if section is not None else []
    figure = Figure(figsize=(4.6 * max(len(charts), 1), 3.6), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    for place, chart in enumerate(charts, 1):
        _draw(chart, figure.add_subplot(1, len(charts), place))
    picture = io.BytesIO()
    canvas.print_png(picture)
    return picture.getvalue()


def _draw(chart: Chart, axes: Any) -> None:
    for line in chart.lines:
        x, y, low, high = zip(*line.points, strict=True)
        style = style_of(line.colour)
        colour = COLOURS[style]
        width, alpha = (0.8, 0.5) if line.faint else (1.8, 1.0)
        axes.plot(x, y, linestyle=DASHES[style % 4], color=colour, linewidth=width, alpha=alpha)
        if not line.faint:
            hollow = {"markerfacecolor": "white"} if style > 3 else {}
            axes.plot(x, y, "os^D"[style % 4], color=colour, markersize=4, label=_as_it_is(line.name), **hollow)
            axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_title(chart.title, fontsize=11)
    axes.set_xlabel(f"{chart.x} in seconds" if chart.x_unit == "seconds" else chart.x)
    axes.set_ylabel(chart.y)
    if chart.log_y:
        axes.set_yscale("log")
    if chart.x_unit == "whole":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:  # no epoch was finished
        axes.legend(frameon=False, fontsize=8)


def _as_it_is(text: str) -> str:
    """Escape text for matplotlib and shorten it."""
    return (text if len(text) <= 30 else f"{text[:12]}…{text[-17:]}").replace("$", r"\$")
