"""When a checkpoint is written, which are kept, and which one a run goes on from."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from app.errors import FileError
from app.training.checkpoints.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from app.training.comparison import Start
from app.training.watcher import Epoch, Place, Watcher

FOLDER = "checkpoints"
_KEPT = 3
"""The newest, and those that stand in for it where it is damaged."""
_NAME = re.compile(r"(\d{6,})\.safetensors")


class Checkpoints(Watcher):
    """Writes one after every so many iterations, after each epoch of all contestants, and where a run is stopped."""

    def __init__(
        self,
        run: Path,
        make: Callable[[Start], Checkpoint],
        contestants: int,
        every: int | None,
        stopping: Callable[[], bool],
    ):
        self.every = every
        self._folder, self._make, self._contestants, self._stopping = run / FOLDER, make, contestants, stopping
        self._number = max(_numbers(self._folder), default=0)

    def piece(self, place: Place, losses: np.ndarray, accuracies: np.ndarray) -> None:
        if self._stopping() or (self.every and place.done % self.every == 0):
            self._write(Start(place.epoch, place.turn, place.done, place.seconds))

    def epoch(self, place: Place, result: Epoch) -> None:
        if place.turn + 1 == self._contestants:
            self._write(Start(place.epoch + 1))
        elif self._stopping():
            self._write(Start(place.epoch, place.turn + 1))

    def _write(self, start: Start) -> None:
        self._number += 1
        write_checkpoint(_path(self._folder, self._number), self._make(start))
        for number in _numbers(self._folder)[:-_KEPT]:
            with contextlib.suppress(OSError):  # one too many does no harm
                _path(self._folder, number).unlink()


def newest(run: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The last checkpoint of a run that is whole; None if none was written yet. Damaged ones are told of."""
    numbers = _numbers(run / FOLDER)
    for number in reversed(numbers):
        try:
            return read_checkpoint(_path(run / FOLDER, number))
        except FileError as error:
            say(f"note: a checkpoint cannot be used, so the one before it is: {error}")
    if numbers:
        raise FileError(
            f"none of the checkpoints in {run / FOLDER} can be used; remove that folder to let the run begin anew"
        )
    return None


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.safetensors"


def _numbers(folder: Path) -> list[int]:
    """Those of the checkpoints that are there, in order."""
    try:
        names = [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))
