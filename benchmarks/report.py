"""The figures as tables of Markdown, and where they are put."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

OURS, FLOOR = "ours", "products"


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The contenders, the fastest first, those that did not run last."""
    good = sorted((row for row in rows if not row["problem"]), key=lambda row: row["best"])
    ours = next((row["best"] for row in good if row["name"] == OURS), None)
    lines = [
        "| Contender | Best epoch, s | Median, s | Against ours | Five epochs from start, s | Peak, MiB | Accuracy |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in good:
        numbers = [f"{row['best']:.4f}", f"{row['median']:.4f}", f"{row['best'] / ours:.2f}" if ours else ""]
        trained = row["name"] != FLOOR
        numbers += [f"{row['five']:.2f}" if trained and row["five"] else "", f"{row['peak']:.0f}" if trained else ""]
        numbers += [f"{row['accuracy']:.4f}" if row["accuracy"] is not None else ""]
        lines.append(f"| {row['title']} | {' | '.join(numbers)} |")
    lines += [f"| {row['title']} | {row['problem']} | | | | | |" for row in rows if row["problem"]]
    return "\n".join(lines)


def first_runs_table(rows: Sequence[dict[str, Any]]) -> str:
    """From an edited operator to five epochs, the quickest first."""
    lines = ["| Contender | Best, s | Median, s |", "| --- | ---: | ---: |"]
    for row in sorted((row for row in rows if row["seconds"]), key=lambda row: min(row["seconds"])):
        lines.append(f"| {row['title']} | {min(row['seconds']):.2f} | {statistics.median(row['seconds']):.2f} |")
    return "\n".join(lines + [f"| {row['title']} | {row['problem']} | |" for row in rows if not row["seconds"]])


def paired_table(ratios: dict[str, Sequence[float]]) -> str:
    lines = ["| Custom ReLU | Time over the built-in's, median | lowest | highest |", "| --- | ---: | ---: | ---: |"]
    for title, found in ratios.items():
        lines.append(f"| {title} | {statistics.median(found):.3f} | {min(found):.3f} | {max(found):.3f} |")
    return "\n".join(lines)


def calls_table(rows: Sequence[dict[str, Any]]) -> str:
    """One call of a custom operator, the quickest first."""
    lines = ["| One call, forward and backward | Median, µs | Best, µs |", "| --- | ---: | ---: |"]
    for row in sorted((row for row in rows if row["us"]), key=lambda row: statistics.median(row["us"])):
        lines.append(f"| {row['title']} | {statistics.median(row['us']):.1f} | {min(row['us']):.1f} |")
    return "\n".join(lines + [f"| {row['title']} | {row['problem']} | |" for row in rows if not row["us"]])


def growth_table(points: Sequence[dict[str, Any]], titles: dict[str, str]) -> str:
    """A table for each thing that was varied; ~ marks an epoch of which only a part was run."""
    names = list(points[0]["seconds"])
    return "\n\n".join(_varied(what, points, names, titles) for what in dict.fromkeys(p["what"] for p in points))


def _varied(what: str, points: Sequence[dict[str, Any]], names: Sequence[str], titles: dict[str, str]) -> str:
    of_depth = what == "depth"
    heads = [what, *(f"{titles[name]}, s" for name in names)]
    heads += ["ours compiles, s", *(f"{titles[name]} starts, s" for name in names)] if of_depth else []
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join(['---:'] * len(heads))} |"]
    for point in (p for p in points if p["what"] == what):
        part = "~" if point["rows"] < 60_000 else ""
        cells = [str(point["value"]), *(_number(point["seconds"][name], part) for name in names)]
        if of_depth:
            ready = point["ready"]
            cells += [_number(compile_seconds(point)), *(_number(ready[name][-1]) for name in names)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def compile_seconds(point: dict[str, Any]) -> float | None:
    """What a start with an empty cache takes longer than the next one."""
    cold, warm = [*point["ready"].get(OURS, []), None, None][:2]
    return None if cold is None or warm is None else cold - warm


def _number(value: float | None, part: str = "") -> str:
    return "-" if value is None else f"{part}{value:.4f}" if value < 1 else f"{part}{value:.2f}"


def bars(rows: Sequence[dict[str, Any]]) -> str:
    """Seconds per epoch as a picture in SVG: a bar for each contender, with colours for dark pages."""
    good = sorted((row for row in rows if not row["problem"]), key=lambda row: row["best"])
    high, left, wide = 22, 400, 330
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {high * len(good) + 30}" font-family="sans-serif"'
        ' font-size="12"><style>text { fill: #1f2937 } .ours { fill: #c2410c } .floor { fill: #9ca3af }'
        " .other { fill: #64748b } @media (prefers-color-scheme: dark) { text { fill: #e4e8ee } }</style>"
    ]
    for number, row in enumerate(good):
        kind = "ours" if row["name"].startswith("ours") else "floor" if row["name"] == FLOOR else "other"
        y, width = high * number, wide * row["best"] / good[-1]["best"]
        title = escape(re.sub(r"\*\*", "", row["title"]))
        parts.append(f'<text x="{left - 6}" y="{y + 15}" text-anchor="end">{title}</text>')
        parts.append(f'<rect class="{kind}" x="{left}" y="{y + 3}" width="{width:.1f}" height="{high - 6}"/>')
        parts.append(f'<text x="{left + width + 5:.1f}" y="{y + 15}">{row["best"]:.3f}</text>')
    parts.append(
        f'<text x="{left}" y="{high * len(good) + 18}">seconds per epoch (best of eight after the first)</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def machine_text(machine: dict[str, Any], sample: bool) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    text = (
        f"Measured on {machine['date']}: {machine['cpu']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}, {packages}; NumPy's BLAS is {machine['blas']}. "
        f"The load average before was {machine['load']}."
    )
    return f"**On the committed sample, not on full MNIST.** {text}" if sample else text


def replace_between(path: Path, mark: str, text: str) -> bool:
    """Put text between a file's `<!-- mark -->` and `<!-- /mark -->`; False where the file has no such place."""
    first, last = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    content = path.read_text(encoding="utf-8") if path.exists() else ""
    head, found, rest = content.partition(first)
    _, closed, tail = rest.partition(last)
    if not (found and closed):
        return False
    path.write_text(f"{head}{first}\n{text}\n{last}{tail}", encoding="utf-8")
    return True
