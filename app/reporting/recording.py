"""What a run writes into its metrics for the report alone: how it began, and what its hidden units did."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from app.data import Dataset
from app.reporting import machine
from app.training.watcher import Contestant, Epoch, Place, Watcher


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


class ActivityEvents(Watcher):
    """Tells after every epoch what the hidden units did, an event for each layer."""

    def __init__(self, record: Callable[[dict[str, Any]], None]):
        self._record = record

    def epoch(self, place: Place, result: Epoch) -> None:
        event = {"event": "activations", "operator": place.contestant.operator, "epoch": place.epoch}
        for layer, activity in enumerate(place.contestant.learner.activity()):
            self._record({**event, "layer": layer, **activity._asdict()})
