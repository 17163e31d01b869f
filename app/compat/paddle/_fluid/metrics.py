"""paddle.fluid.metrics and paddle.fluid.average: the mean of many batches, which Paddle 1 reads with `eval`."""

from typing import Any

from app.metric.weighted import WeightedMean


class Accuracy(WeightedMean):
    """The mean of the accuracies of batches, weighted by their sizes."""

    def __init__(self, name: str | None = None):
        super().__init__(name or "accuracy")

    def eval(self) -> float:
        """The mean so far."""
        return self.accumulate()


class WeightedAverage(Accuracy):
    """The mean of the values of batches, weighted by their sizes."""

    def add(self, value: Any, weight: Any) -> None:
        """Add the value of a batch."""
        self.update(value, weight)
