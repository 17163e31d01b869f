"""paddle.fluid.average"""

from typing import Any

from app.compat.missing import missing
from app.metric.weighted import WeightedMean


class WeightedAverage(WeightedMean):
    """The mean of figures of batches, by their sizes."""

    def add(self, value: Any, weight: Any) -> None:
        self.update(value, weight)

    def eval(self) -> float:
        return self.accumulate()


__all__ = ["WeightedAverage"]

__getattr__ = missing(__name__)
