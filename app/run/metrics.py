"""Records the metrics of a run: its start, reports and epochs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from app import machine
from app.data import Dataset
from app.run.callbacks import Callback, Contestant, Position
from app.run.events import Data, Epoch, Iteration, Record, Start


def start_event(dataset: Dataset, entered: Sequence[Contestant]) -> Start:
    """Return the first event of a run: machine, data, and how the engine runs each network."""
    data = Data(
        origin=dataset.origin.replace(f"{Path.cwd()}{os.sep}", ""),  # reports are forwarded
        verified=dataset.verified,
        sample=dataset.is_sample,
        training=len(dataset.train_images),
        test=len(dataset.test_images if dataset.final_images is None else dataset.final_images),
        shape=list(dataset.image_shape),
        validation=0 if dataset.final_images is None else len(dataset.test_images),
    )
    engines = {contestant.operator: contestant.learner.how() for contestant in entered}
    return Start(time.strftime("%Y-%m-%d %H:%M:%S"), machine.describe(), data, engines)


class Metrics(Callback):
    """Records every report and epoch."""

    def __init__(self, record: Record):
        self._record = record

    def report(self, position: Position, loss: float, accuracy: float) -> None:
        operator = position.contestant.operator
        self._record(Iteration(operator, position.epoch, position.done - 1, loss, accuracy))

    def epoch(self, position: Position, result: Epoch) -> None:
        self._record(result)
