"""How far an operator's network is, in a line: epoch, loss, accuracy, images per second, time left."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from app.training.telling.live import fitted
from app.training.watcher import Place


class Progress:
    """What the live line of one operator shows."""

    def __init__(self, epochs: int, batch_size: int, clock: Callable[[], float] = time.monotonic):
        self._epochs, self._batch_size, self._clock = epochs, batch_size, clock
        self._begun_at: float | None = None
        self._begun_with = 0.0
        self._share = 0.0
        self._epoch = self._done = 0
        self._speed = self._loss = self._accuracy = 0.0

    def begin(self, place: Place) -> None:
        """The operator begins an epoch; how long the whole takes is reckoned from the first that it begins."""
        if self._begun_at is None:
            self._begun_at, self._begun_with = self._clock(), self._share_at(place)
        self._epoch = place.epoch

    def piece(self, place: Place, losses: np.ndarray, accuracies: np.ndarray) -> None:
        """Some iterations more."""
        self._share, self._done = self._share_at(place), place.done
        self._speed = place.done * self._batch_size / place.seconds if place.seconds else 0.0
        self._loss, self._accuracy = float(losses.mean()), float(accuracies.mean())

    def _share_at(self, place: Place) -> float:
        return (place.epoch + place.done / place.iterations) / self._epochs

    def line(self, name: str, columns: int) -> str:
        """As much as there is room for; what matters least goes first."""
        if not self._done:
            return fitted([(name, 0), ("waits for its turn", 1)], columns)
        parts = [
            (name, 0),
            (f"{'epoch ' if columns >= 60 else ''}{self._epoch + 1}/{self._epochs}", 1),
            (f"{self._share:4.0%}", 6),
            (f"loss {self._loss:.4f}", 2),
            (f"accuracy {self._accuracy:.4f}", 4),
            (f"{_short(self._speed)} images/s", 5),
            (self._left(), 3),
        ]
        return fitted(parts, columns)

    def _left(self) -> str:
        """The time until the operator has done its last iteration, all that goes on beside it included."""
        came = self._share - self._begun_with
        if self._share >= 1:
            return "done"
        if came <= 0 or self._begun_at is None:
            return "? left"
        seconds = round((self._clock() - self._begun_at) / came * (1 - self._share))
        hours, minutes = divmod(seconds // 60, 60)
        clock = f"{hours}:{minutes:02}" if hours else f"{minutes}"
        return f"{clock}:{seconds % 60:02} left"


def _short(number: float) -> str:
    """1234567 as 1.23M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"
