"""Classification errors: the confusion matrices and the misclassified images."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

import numpy as np

from app.data.dataset import CLASSES
from app.report import pictures
from app.report.charts import style_of
from app.report.markup import tag, with_csv
from app.report.sections.section import Section
from app.run.folder import folder_name
from app.run.predictions import NONE, SHOWN, Predictions, alike
from app.run.record import RunRecord
from app.run.wording import count, listed, share


def section(runs: Sequence[RunRecord]) -> Section | None:
    """Return the confusion matrices, the misclassified digits, and the digits on which the operators disagree."""
    predictions = runs[0].predictions
    if predictions is None:
        return None
    parts = [
        tag("div", _matrix(predictions, group), _wrong(predictions, group), class_="beside")
        for group in alike(predictions.predicted)
    ]
    if len(predictions.predicted) > 1:
        parts.append(_disputed(predictions))
    about = f"Counted over {count(len(predictions.labels), f'{runs[0].tested_on} image')}."
    if len(runs) > 1:
        about += " The networks are those of the first seed."
    if not runs[0].complete:  # as after an error in training
        about += " The networks have the weights in this folder, which are later than the last full epoch."
    return Section("mistakes", "Mistakes", about, (), parts)


def _matrix(predictions: Predictions, operators: list[str]) -> Element:
    table = predictions.confusion(operators[0])
    columns = CLASSES + bool(table[:, NONE].any())
    names = [str(digit) for digit in range(CLASSES)] + ["none"]
    most = max(int(np.max(table * ~np.eye(CLASSES, CLASSES + 1, dtype=bool))), 1)
    head = tag("tr", tag("td"), [tag("th", name, scope="col") for name in [*names[:columns], "%"]])
    right = 100 * table.diagonal() / np.maximum(table.sum(axis=1), 1)
    rows = [
        tag(
            "tr",
            tag("th", names[digit], scope="row"),
            [_cell(table, digit, column, most) for column in range(columns)],
            tag("td", f"{right[digit]:.1f}"),
        )
        for digit in range(CLASSES)
    ]
    caption = (
        f"Confusion matrix of {listed(operators)}: labels in rows, predictions in columns, and the percentage of each "
        "label that was classified correctly"
    )
    matrix = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", rows), class_="confusion")
    return tag("figure", with_csv(matrix, f"confusion-{folder_name(operators)}"), class_="chart")


def _cell(table: np.ndarray, digit: int, column: int, most: int) -> Element:
    number = int(table[digit, column])
    heat = "right" if digit == column else f"h{-(-5 * number // most)}"
    return tag("td", str(number) if number else "·", class_=heat)


def _wrong(predictions: Predictions, operators: list[str]) -> Element:
    places = predictions.wrong(operators[0])
    return _gallery(
        predictions, f"{count(len(places), 'digit')} misclassified by {listed(operators)}", places, operators[:1]
    )


def _disputed(predictions: Predictions) -> Element:
    places = predictions.disputed()
    title = f"{count(len(places), 'digit')} on which {listed(list(predictions.predicted))} disagree"
    if not len(places):
        return tag(
            "p", f"{listed(list(predictions.predicted))} give the same prediction for all images.", class_="note"
        )
    return _gallery(predictions, title, places, list(predictions.predicted))


def _gallery(predictions: Predictions, title: str, places: np.ndarray, operators: list[str]) -> Element:
    row_of = {int(place): row for row, place in enumerate(predictions.shown)}
    shown = [int(place) for place in places if int(place) in row_of][:SHOWN]
    items = [_digit(predictions, place, predictions.images[row_of[place]], operators) for place in shown]
    predicted = f"the predictions of {listed(operators)}" if len(operators) > 1 else "the prediction"
    text = f"Below each digit: its label → {predicted}, with the probability."
    if len(shown) < len(places):
        text += f" These are the {len(shown)} with the highest probability."
    about = tag("p", text, class_="about") if shown else None
    return tag("div", tag("h3", title), about, tag("ul", items, class_="digits"), class_="gallery")


def _digit(predictions: Predictions, place: int, pixels: np.ndarray, operators: list[str]) -> Element:
    label, rows, width = int(predictions.labels[place]), *pixels.shape
    answered = [_named(int(predictions.predicted[operator][place])) for operator in operators]
    description = f"a {label}, classified as {' and '.join(answered)}"
    image = tag("img", src=pictures.digit(pixels), alt=description, width=width, height=rows)
    lines = []
    for operator, answer in zip(operators, answered, strict=True):
        sure = tag("small", share(float(predictions.confidence[operator][place]), 0))
        lines.append(
            tag("span", f"{answer} ", sure, class_=f"c{style_of(list(predictions.predicted).index(operator))}")
        )
    return tag("li", image, tag("p", tag("b", f"{label} → "), lines), title=f"test image {place}: {description}")


def _named(answer: int) -> str:
    return "none" if answer == NONE else str(answer)
