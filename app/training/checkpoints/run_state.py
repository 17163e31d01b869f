"""A run as a checkpoint, and a checkpoint as a run again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from app.data import Dataset
from app.errors import AppError, FileError
from app.graph.serialise import DAMAGE_ERRORS
from app.training.checkpoints import elsewhere
from app.training.checkpoints.checkpoint import Checkpoint
from app.training.comparison import Start
from app.training.config import Config
from app.training.watcher import Contestant, Epoch


class RunState:
    """What of a run is kept in checkpoints, and how it is taken over from one."""

    def __init__(
        self, config: Config, dataset: Dataset, sources: dict[str, str | None], contestants: Sequence[Contestant]
    ):
        self._config = config
        self._contestants = contestants
        self._data = data_hash(dataset)
        self._operators = sources

    def checkpoint(self, start: Start, metrics: bytes) -> Checkpoint:
        """All that the run depends on now, copied."""
        return Checkpoint(
            start=start,
            config=msgspec.to_builtins(self._config),
            operators=self._operators,
            data=self._data,
            metrics=np.frombuffer(metrics, np.uint8),
            learners={contestant.operator: contestant.learner.state() for contestant in self._contestants},
            elsewhere=elsewhere.state(),
        )

    def restore(self, found: Checkpoint) -> None:
        """Go to where the run was; an error where it would not go on as it would have then."""
        if found.data != self._data:
            raise AppError("the images are not those that the run was begun with; see data.source in its config.yaml")
        metrics = found.metrics.tobytes()
        try:
            for contestant in self._contestants:
                contestant.learner.restore(found.learners[contestant.operator])
                contestant.epochs[:] = _epochs(metrics.decode(), contestant.operator)
            elsewhere.restore(found.elsewhere)
        except AppError:
            raise
        except DAMAGE_ERRORS as error:
            raise FileError(f"the checkpoint does not fit its run: {type(error).__name__} {error}") from error


def data_hash(dataset: Dataset) -> str:
    """Tells data sets apart by their labels and some of their images, as all of them would take long to read."""
    digest = hashlib.sha256()
    for images, labels in (
        (dataset.train_images, dataset.train_labels),
        (dataset.test_images, dataset.test_labels),
    ):
        some = images[:: len(images) // 500 + 1]
        digest.update(f"{images.shape}{some.shape}".encode() + np.asarray(labels, np.uint8).tobytes() + some.tobytes())
    return digest.hexdigest()


def _epochs(metrics: str, operator: str) -> list[Epoch]:
    """The epochs that an operator's network has finished, from the lines that tell of them."""
    events = [json.loads(line) for line in metrics.splitlines()]
    return [_epoch(event) for event in events if (event["event"], event.get("operator")) == ("epoch", operator)]


def _epoch(event: Mapping[str, Any]) -> Epoch:
    loss = event["test_loss"]  # None where it was no number
    return Epoch(event["seconds"], event["test_accuracy"], float("nan") if loss is None else loss)
