"""paddle.fluid.metrics and paddle.fluid.average: metrics of many batches, under Paddle 1's names."""

from typing import Any

from app import metric
from app.metric.weighted import WeightedMean


class MetricBase:
    """The base: Paddle 1 calls `accumulate` `eval`."""

    accumulate: Any

    def eval(self) -> Any:
        return self.accumulate()


class Accuracy(MetricBase, WeightedMean):
    """The mean of the accuracies of batches, weighted by their sizes."""

    def __init__(self, name: str | None = None):
        super().__init__(name or "accuracy")


class Precision(MetricBase, metric.Precision):
    """The fraction of predicted positives that are positive."""

    def __init__(self, name: str | None = None):
        super().__init__(name or "precision")


class Recall(MetricBase, metric.Recall):
    """The fraction of positives that were predicted."""

    def __init__(self, name: str | None = None):
        super().__init__(name or "recall")


class Auc(MetricBase, metric.Auc):
    """The area under the ROC curve."""

    def __init__(self, name: str | None = None, curve: str = "ROC", num_thresholds: int = 4095):
        super().__init__(curve, num_thresholds, name or "auc")


class CompositeMetric(MetricBase):
    """Several metrics of the same predictions and labels."""

    def __init__(self, name: str | None = None):
        self._metrics: list[Any] = []

    def add_metric(self, metric: Any) -> None:
        self._metrics.append(metric)

    def reset(self) -> None:
        for one in self._metrics:
            one.reset()

    def update(self, preds: Any, labels: Any) -> None:
        for one in self._metrics:
            one.update(preds, labels)

    def eval(self) -> list[Any]:
        return [one.eval() for one in self._metrics]


class WeightedAverage(WeightedMean):
    """The mean of the values of batches, weighted by their sizes."""

    def add(self, value: Any, weight: Any) -> None:
        """Add the value of a batch."""
        self.update(value, weight)

    def eval(self) -> float:
        """The mean so far."""
        return self.accumulate()
