"""Classifies a drawing, prepared like MNIST's images, with a run's networks. The result is plain data."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import AppError, DataError, OperatorError
from app.experiment.results import Result
from app.nn import functional
from app.run.layers import layer_names
from app.run.nonfinite import warnings_off
from app.tensor import Tensor, no_grad
from app.use.digits import SIZE, prepare_ink

SIDE = 4 * SIZE
"""The rows and columns of the drawing; each byte is the ink of a pixel."""
MOST_UNITS = 4096
"""The maximum number of hidden units that are shown per layer."""
SHIPPED = Path(__file__).parent / "network"
"""The run shipped with opsmith; its README says how it was made."""
FEW = 0.95
"""Networks with a lower test accuracy often misclassify handwriting."""


class NothingDrawnError(DataError):
    """A drawing without ink."""


@dataclass(frozen=True)
class Prediction:
    """The result of a network, a row per picture."""

    hidden: list[np.ndarray]
    """The values of each hidden layer's units, after the activation."""
    probabilities: np.ndarray


class Classifier:
    """Classifies drawings with every network of a run, one drawing at a time. The networks run eagerly: for one picture
    that is the fastest."""

    def __init__(self, run: Result):
        self._run, self._networks = run, {name: run[name].network for name in run}
        self._lock = threading.Lock()
        self.classify(example())  # the first call of an operator may compile it
        blank = np.zeros((1, SIZE * SIZE), np.uint8)
        self._units = [layer[0].size for layer in self.predict(run.operators[0], blank).hidden]

    def predict(self, operator: str, pictures: np.ndarray) -> Prediction:
        """Classify pictures, given as rows of bytes. An error of an operator, which may be the user's own, is reported
        in a line."""
        try:
            with no_grad(), warnings_off():
                *hidden, scores = self._networks[operator].outputs(Tensor(pictures))
                return Prediction([layer.numpy() for layer in hidden], functional.softmax(scores).numpy())
        except AppError:
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
            raise OperatorError(f"the network of {operator} failed: {message}") from error

    def classify(self, drawing: bytes) -> dict[str, Any]:
        """Return the result of each network and the prepared image."""
        start = time.perf_counter()
        ink = np.frombuffer(drawing, np.uint8).reshape(SIDE, SIDE).astype(np.float32) / np.float32(255)
        try:
            picture = prepare_ink(ink).reshape(1, -1)
        except DataError as error:
            raise NothingDrawnError("nothing is drawn") from error
        with self._lock:
            predictions = [self.predict(operator, picture) for operator in self._networks]
        return {
            "picture": picture[0].tolist(),
            "networks": [_plain(one) for one in predictions],
            "milliseconds": round(1000 * (time.perf_counter() - start), 3),
        }

    def about(self) -> dict[str, Any]:
        """Return the description of the run for the page."""
        run, accuracies = self._run, accuracies_of(self._run)
        several = "networks" if len(run) > 1 else "network"
        return {
            "side": SIDE,
            "size": SIZE,
            "run": f"the {several} {'that comes with opsmith' if run.folder == SHIPPED else f'of {name_of(run)}'}",
            "layers": layer_names(run.config.model.all_layers),
            "hidden": self._units,
            "networks": [{"operator": name, "accuracy": accuracy} for name, accuracy in accuracies.items()],
            "advice": advice(accuracies.values()),
        }


def name_of(run: Result) -> str:
    """Return the folder of a run, from the working folder if it is in there."""
    folder = run.folder
    return str(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder)


def accuracies_of(run: Result) -> dict[str, float | None]:
    """Return the test accuracy of each network; None without the last line of the metrics, as the weights may be those
    of later epochs."""
    record = run.runs[0]
    return {name: record.test_accuracy(name) if record.ended else None for name in run}


def advice(accuracies: Iterable[float | None]) -> str:
    """Return advice on training better networks; '' if these are accurate."""
    rates = [accuracy for accuracy in accuracies if accuracy is not None]
    if not rates or max(rates) >= FEW:
        return ""
    return (
        f"The best network of this run classifies only {100 * max(rates):.1f} % of the test digits correctly, and will "
        "often misread drawings. "
        "To train better networks: opsmith train --config best"
    )


def _plain(prediction: Prediction) -> dict[str, Any]:
    """Convert the result for one picture to lists, with null for NaN and infinity."""
    return {
        "probabilities": _numbers(prediction.probabilities[0]),
        "hidden": [_numbers(layer[0].reshape(-1)[:MOST_UNITS]) for layer in prediction.hidden],
    }


def _numbers(values: np.ndarray) -> list[float | None]:
    return [
        float(f"{value:.4g}") if finite else None for value, finite in zip(values, np.isfinite(values), strict=True)
    ]


def example() -> bytes:
    """A drawing of a one."""
    ink = np.zeros((SIDE, SIDE), np.uint8)
    ink[SIDE // 5 : -SIDE // 5, SIDE // 2 : SIDE // 2 + SIDE // 10] = 255
    return ink.tobytes()
