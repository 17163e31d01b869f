"""An index over runs: a page with a row for each operator of each run in a folder, and links to their reports."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote
from xml.etree.ElementTree import Element

from app.errors import AppError
from app.files import refuse_foreign, write_whole
from app.report.axes import around
from app.report.charts import style_of
from app.report.markup import tag
from app.report.page import MARK, whole_page
from app.report.record import Record, over_seeds, read_events
from app.report.report import PAGE
from app.report.verdict import is_at_chance
from app.run.events import METRICS
from app.run.layers import layer_names
from app.run.wording import count, has_diverged, seconds, share

INDEX = "index.html"
_COLUMNS = ("run", "begun", "network", "training", "operator", "accuracy", "time per epoch", "accuracy by epoch")
_NUMBERS = ("accuracy", "time per epoch")
_NOTE = (
    "Accuracies are those on the test images after the last epoch, or on validation images where a run has not ended, "
    "averaged over the seeds. Click a column heading to sort."
)


def runs_in(folder: Path) -> list[Path]:
    """Return the runs in a folder, by name."""
    return sorted(file.parent for file in folder.glob(f"*/{METRICS}"))


def write_index(folder: Path, runs: Sequence[Path]) -> Path:
    """Write the index of some runs into their folder; return the page."""
    refuse_foreign(folder / INDEX, MARK, 1 << 20, "remove it, or move the runs into a folder of their own")
    rows, notes = [], []
    for run in runs:
        try:
            rows += _rows(read_events(run))
        except AppError as error:
            notes.append(tag("p", f"{run.name} is not listed: {error}", class_="note"))
    heads = [tag("th", name, scope="col", class_="number" if name in _NUMBERS else None) for name in _COLUMNS]
    head = tag("thead", tag("tr", heads))
    body = tag("tbody", rows)
    table = tag("div", tag("table", head, body, class_="index"), class_="scroll", tabindex="0")
    title = f"{count(len(runs), 'run')} in {folder.resolve().name}"
    heading = [tag("h1", title), tag("p", _NOTE, class_="about")]
    section = tag("section", table, notes, aria_label="Runs")
    write_whole(folder / INDEX, whole_page(title, heading, [section], "index.js", None).encode())
    return folder / INDEX


def _rows(record: Record) -> list[Element]:
    config, run = record.config, record.folder
    link = f"{quote(os.fsencode(run.name))}/{PAGE}" if (run / PAGE).is_file() else None
    begun = record.start.at if record.start is not None else ""
    network = "-".join(layer_names(config.model.all_layers)) or "no hidden layers"
    seeds = f", {count(record.seeds, 'seed')}" if record.seeds > 1 else ""
    train = config.train
    training = f"{train.optimizer} {train.learning_rate:g}, batch {train.batch_size}{seeds}; {config.engine}"
    rows = []
    for number, operator in enumerate(record.operators):
        accuracy = record.test_accuracies(operator) or [epoch.test_accuracy for epoch in record.last(operator)]
        times = [epoch.seconds for epoch in record.epochs_of(operator)]
        mean, median = statistics.fmean(accuracy) if accuracy else None, statistics.median(times) if times else None
        cells = [
            tag("th", tag("a", run.name, href=link) if link else run.name, scope="row"),
            tag("td", begun),
            tag("td", network),
            tag("td", training),
            tag("td", tag("code", operator)),
            _number(share(mean) if mean is not None else "–", mean, _trouble(record, operator)),
            _number(seconds(median) if median is not None else "–", median),
            tag("td", _sparkline(record, operator, number)),
        ]
        rows.append(tag("tr", cells))
    return rows


def _trouble(record: Record, operator: str) -> str:
    done, epochs = record.finished(operator), record.config.train.epochs
    lost = any(has_diverged(epoch.test_loss) for epoch in record.last(operator))
    if lost or any(event.operator == operator for event in record.nonfinite):
        return "diverged"
    if any(one.state == "wrong" for one in record.checked if one.operator == operator):
        return "wrong gradient"
    if is_at_chance(record, operator):
        return "at chance level"
    return f"{done} of {count(epochs, 'epoch')}" if done < epochs else ""


def _number(words: str, value: float | None, note: str = "") -> Element:
    small = tag("small", f" {note}") if note else None
    return tag("td", words, small, class_="number", data_value=-1 if value is None else value)


def _sparkline(record: Record, operator: str, number: int) -> Element | None:
    """Draw the accuracy after each epoch as a small curve."""
    points = over_seeds(record.epochs_of(operator), lambda e: e.epoch, lambda e: e.test_accuracy)
    if len(points) < 2:
        return None
    x, y = around("", [p[0] for p in points], margin=0.02), around("", [p[1] for p in points], "share", margin=0.1)
    path = "M" + "L".join(f"{90 * x.place(p[0]):.1f} {24 * (1 - y.place(p[1])):.1f}" for p in points)
    words = f"{operator}: {', '.join(share(p[1]) for p in points)}"
    curve = tag("path", d=path, class_=f"line c{style_of(number)}")
    return tag("svg", curve, class_="spark", viewBox="0 0 90 24", role="img", aria_label=words)
