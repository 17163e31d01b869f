"""The mean of figures of batches, each as heavy as its batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import AppError
from app.metric.metrics import Metric


class WeightedMean(Metric):
    """The mean of all figures told so far, by their weights."""

    def __init__(self, name: str = "mean"):
        self._name = name
        self.reset()

    def reset(self) -> None:
        """Forget every figure."""
        self._sum, self._weight = 0.0, 0.0

    def update(self, value: Any, weight: Any = 1) -> None:
        """Tell the figure of a batch, and how heavy it is."""
        heavy = float(np.asarray(weight).sum())
        if heavy < 0:
            raise AppError(f"{self._name}: a weight is no less than zero, found {heavy}")
        self._sum += float(np.asarray(value, float).mean()) * heavy
        self._weight += heavy

    def accumulate(self) -> float:
        """The mean so far."""
        if not self._weight:
            raise AppError(f"{self._name}: there is no mean before an update()")
        return self._sum / self._weight

    def name(self) -> str:
        return self._name
