"""The figures as pictures, in SVG."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.report import FLOOR, compile_seconds

matplotlib.use("svg")
matplotlib.rcParams.update(
    {"svg.hashsalt": "opsmith", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False}
)
matplotlib.rcParams["axes.spines.right"] = False

from matplotlib import pyplot  # noqa: E402

OURS, FLOOR_GREY, OTHER = "#c2410c", "#d1d5db", "#64748b"
COLOURS = {"ours": OURS, "jax_scan": "#2563eb", "torch_eager": OTHER}
DARK = """
@media (prefers-color-scheme: dark) {
text { fill: #e4e8ee; } [style*="fill: #ffffff"] { fill: #14181f !important; }
[style*="stroke: #000000"] { stroke: #9aa4b2 !important; } [style*="stroke: #64748b"] { stroke: #94a3b8 !important; }
}
"""
"""Colours for dark pages."""
AXES = {"width": "hidden width", "batch": "batch size", "depth": "hidden layers"}


def bars(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Seconds per epoch, a bar for each contender."""
    good = sorted((row for row in rows if not row["problem"]), key=lambda row: -row["best"])
    colours = [_colour(row) for row in good]
    figure, axes = pyplot.subplots(figsize=(8, 0.28 * len(good) + 0.8))
    drawn = axes.barh([_plain(row["title"]) for row in good], [row["best"] for row in good], color=colours)
    axes.bar_label(drawn, fmt="%.3f", padding=3)
    axes.margins(x=0.12)  # room for the figure of the longest bar
    axes.set_xlabel("seconds per epoch (best of eight after the first)")
    _save(figure, path)


def growth(points: Sequence[dict[str, Any]], titles: dict[str, str], path: Path) -> None:
    """Seconds per epoch against width, batch and depth, and compile time against depth."""
    figure, panels = pyplot.subplots(2, 2, figsize=(9, 7))
    for what, axes in zip(AXES, panels.flat, strict=False):
        of_this = [point for point in points if point["what"] == what]
        for name in points[0]["seconds"]:
            known = [(p["value"], p["seconds"][name]) for p in of_this if p["seconds"][name]]
            _line(axes, known, titles[name], COLOURS.get(name))
        _scales(axes, AXES[what], "seconds per epoch")
    axes = panels[1, 1]
    depths = [point for point in points if point["what"] == "depth"]
    known = [(p["value"], seconds) for p in depths if (seconds := compile_seconds(p))]
    _line(axes, known, "This project compiles", OURS)
    for name in points[0]["ready"]:
        known = [(p["value"], p["ready"][name][-1]) for p in depths if p["ready"][name][-1]]
        _line(axes, known, f"{titles[name]} starts", COLOURS.get(name), "--")
    _scales(axes, AXES["depth"], "seconds")
    _save(figure, path)


def _colour(row: dict[str, Any]) -> str:
    return OURS if row["name"].startswith("ours") else FLOOR_GREY if row["name"] == FLOOR else OTHER


def _line(axes, known, label, colour, style="-") -> None:
    if known:
        axes.plot(*zip(*known, strict=True), marker="o", markersize=4, label=label, color=colour, linestyle=style)


def _scales(axes, x: str, y: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=7)


def _plain(title: str) -> str:
    return re.sub(r"\*\*", "", title)


def _save(figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    path.write_text(path.read_text(encoding="utf-8").replace("</style>", f"{DARK}</style>", 1), encoding="utf-8")
    pyplot.close(figure)
