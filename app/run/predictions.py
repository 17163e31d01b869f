"""The predictions of the networks on the test images, stored in the run's folder with the images that the report
shows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.data import Dataset
from app.data.dataset import CLASSES
from app.errors import FileError
from app.files import LARGEST
from app.run.folder import PREDICTIONS
from app.saving import load_own, save

SHOWN = 21
"""The maximum number of images shown per kind."""
NONE = CLASSES
"""The prediction of a network whose scores are NaN."""


@dataclass(frozen=True)
class Predictions:
    """The label of each test image, and the prediction and confidence of each operator's network."""

    labels: np.ndarray
    predicted: dict[str, np.ndarray]
    confidence: dict[str, np.ndarray]
    shown: np.ndarray
    """The indices of the stored images."""
    images: np.ndarray
    """The stored images, of shape (count, rows, columns)."""

    def right(self, operator: str) -> np.ndarray:
        """A mask of the images that the network classified correctly."""
        return np.asarray(self.predicted[operator] == self.labels)

    def wrong(self, operator: str) -> np.ndarray:
        """The indices of the misclassified images, most confident first."""
        return _most_confident(~self.right(operator), self.confidence[operator])

    def disputed(self) -> np.ndarray:
        """The indices of the images on which the operators disagree, most confident first."""
        first, *others = self.predicted.values()
        differs = np.any([other != first for other in others], axis=0) if others else np.zeros(len(first), bool)
        return _most_confident(differs, np.sum(list(self.confidence.values()), axis=0))

    def confusion(self, operator: str) -> np.ndarray:
        """The confusion matrix: rows are labels, columns are predictions. The last column counts images without a
        prediction."""
        table = np.zeros((CLASSES, CLASSES + 1), np.int64)
        np.add.at(table, (self.labels, self.predicted[operator]), 1)
        return table


def classes_of(scores: np.ndarray) -> np.ndarray:
    """Return the class with the highest score of each row; `NONE` where a score is NaN, as accuracies count it."""
    return np.where(np.isnan(scores).any(axis=1), NONE, scores.argmax(axis=1)).astype(np.uint8)


def _confidence(scores: np.ndarray) -> np.ndarray:
    """Return the probability of the class with the highest score, by softmax; 0 where a score is NaN."""
    top = scores.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # two scores may be infinite
        powers = np.where(scores == top, 1.0, np.exp(scores - top))
    return np.where(np.isnan(top[:, 0]), 0, 1 / powers.sum(axis=1)).astype(np.float32)


def predictions_of(dataset: Dataset, scores: Mapping[str, np.ndarray]) -> Predictions:
    """Compute the predictions from the scores of each operator's network, and select the images to show."""
    predicted = {operator: classes_of(rows) for operator, rows in scores.items()}
    confidence = {operator: _confidence(rows) for operator, rows in scores.items()}
    nothing = np.zeros(0, np.int64)
    result = Predictions(dataset.test_labels.astype(np.uint8), predicted, confidence, nothing, nothing)
    worth = [*(result.wrong(operator)[:SHOWN] for operator in scores), result.disputed()[:SHOWN]]
    shown = np.unique(np.concatenate(worth))
    images = dataset.test_images[shown].reshape(len(shown), *dataset.image_shape)
    return Predictions(result.labels, predicted, confidence, shown, images)


def write_predictions(result: Predictions, folder: Path) -> None:
    """Write the predictions to a run's folder."""
    save(
        {"labels": result.labels, "shown": result.shown, "images": result.images, **_by_operator(result)},
        folder / PREDICTIONS,
    )


def read_predictions(folder: Path) -> Predictions | None:
    """Read and check the predictions in a run's folder. Returns None if there are none, as after a killed run."""
    path = folder / PREDICTIONS
    if not os.path.lexists(path):
        return None
    data = load_own(path, LARGEST["arrays"])
    try:
        operators = [str(operator) for operator in data["operators"]]
        predicted, confidence = (dict(zip(operators, data[key], strict=True)) for key in ("predicted", "confidence"))
        result = Predictions(data["labels"], predicted, confidence, data["shown"], data["images"])
        fits = operators and _fits(result)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise FileError(f"{path} holds no predictions: {type(error).__name__} {error}") from error
    if not fits:
        raise FileError(f"{path} holds no predictions: its arrays do not match")
    return result


def _by_operator(result: Predictions) -> dict[str, Any]:
    predicted, confidence = result.predicted, result.confidence
    return {
        "operators": list(predicted),
        "predicted": list(predicted.values()),
        "confidence": list(confidence.values()),
    }


def _fits(result: Predictions) -> bool:
    count, images = len(result.labels), result.images
    rows = [*result.predicted.values(), *result.confidence.values()]
    classes = [
        (result.labels, CLASSES),
        *((array, NONE + 1) for array in result.predicted.values()),
        (result.shown, count),
    ]
    return (
        count > 0
        and all(array.shape == (count,) for array in rows)
        and all(array.dtype.kind == "f" for array in result.confidence.values())
        and all(a.ndim == 1 and a.dtype.kind in "iu" and bool(((a >= 0) & (a < end)).all()) for a, end in classes)
        and images.dtype == np.uint8
        and images.ndim == 3
        and len(images) == len(result.shown)
    )


def alike(arrays: Mapping[str, np.ndarray]) -> list[list[str]]:
    """Group the operators whose values are equal."""
    groups: list[list[str]] = []
    for operator, array in arrays.items():
        group = next((group for group in groups if np.array_equal(arrays[group[0]], array)), None)
        if group is None:
            groups.append(group := [])
        group.append(operator)
    return groups


def _most_confident(which: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    places = np.flatnonzero(which)
    return places[np.argsort(-confidence[places], kind="stable")]
