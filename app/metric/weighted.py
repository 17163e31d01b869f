"""The weighted mean of the values of batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import AppError
from app.metric.metrics import Metric


class WeightedMean(Metric):
    """The weighted mean of all values so far."""

    def __init__(self, name: str = "mean"):
        self._name = name
        self.reset()

    def reset(self) -> None:
        """Start anew."""
        self._sum, self._weight = 0.0, 0.0

    def update(self, value: Any, weight: Any = 1) -> None:
        """Add the value of a batch, and its weight."""
        heavy = float(np.asarray(weight).sum())
        if heavy < 0:
            raise AppError(f"{self._name}: weights must be at least 0, found {heavy}")
        self._sum += float(np.asarray(value, float).mean()) * heavy
        self._weight += heavy

    def accumulate(self) -> float:
        """The mean so far."""
        if not self._weight:
            raise AppError(f"{self._name}: there is no mean before an update()")
        return self._sum / self._weight

    def name(self) -> str:
        return self._name
