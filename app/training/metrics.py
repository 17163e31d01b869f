"""What a run writes into its metrics: how it began, its reports and epochs, and what its hidden units did.

Each is an event, a dictionary that JSON can hold; `app.training.events` reads them again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from app.data import Dataset
from app.training import machine
from app.training.watcher import Contestant, Epoch, Place, Watcher

Record = Callable[[dict[str, Any]], None]


def start_event(dataset: Dataset, entered: Sequence[Contestant]) -> dict[str, Any]:
    """On what machine and data a run began, and how the engine runs each network."""
    return {
        "event": "start",
        "at": time.strftime("%Y-%m-%d %H:%M:%S"),
        "machine": machine.describe(),
        "data": {
            "origin": dataset.origin.replace(f"{Path.cwd()}{os.sep}", ""),  # reports are passed on
            "verified": dataset.verified,
            "sample": dataset.is_sample,
            "training": len(dataset.train_images),
            "test": len(dataset.test_images),
            "shape": list(dataset.image_shape),
        },
        "engines": {contestant.operator: contestant.learner.how() for contestant in entered},
    }


class Metrics(Watcher):
    """Tells every report and every epoch, and of each epoch what the units of each hidden layer did."""

    def __init__(self, record: Record):
        self._record = record

    def report(self, place: Place, loss: float, accuracy: float) -> None:
        event = {"event": "iteration", "operator": place.contestant.operator, "epoch": place.epoch}
        self._record({**event, "iteration": place.done - 1, "loss": loss, "accuracy": accuracy})

    def epoch(self, place: Place, result: Epoch) -> None:
        of_epoch = {"operator": place.contestant.operator, "epoch": place.epoch}
        figures = {"seconds": result.seconds, "test_accuracy": result.accuracy, "test_loss": result.loss}
        self._record({"event": "epoch", **of_epoch, **figures})
        for layer, activity in enumerate(place.contestant.learner.activity()):
            self._record({"event": "activations", **of_epoch, "layer": layer, **activity._asdict()})
