"""paddle.fluid.metrics: figures gathered over batches, under Paddle 1's names."""

from typing import Any

from app import metric
from app.compat.missing import missing
from app.metric.weighted import WeightedMean


class MetricBase:
    """What Paddle 1 calls `accumulate`."""

    accumulate: Any

    def eval(self) -> Any:
        return self.accumulate()


class Accuracy(MetricBase, WeightedMean):
    """The mean of accuracies of batches, by their sizes."""

    def __init__(self, name: str | None = None):
        super().__init__(name or "accuracy")


class Precision(MetricBase, metric.Precision):
    """How many of those taken for true are."""

    def __init__(self, name: str | None = None):
        super().__init__(name or "precision")


class Recall(MetricBase, metric.Recall):
    """How many of those that are true were taken for it."""

    def __init__(self, name: str | None = None):
        super().__init__(name or "recall")


class Auc(MetricBase, metric.Auc):
    """The area under the curve of true over false alarms."""

    def __init__(self, name: str | None = None, curve: str = "ROC", num_thresholds: int = 4095):
        super().__init__(curve, num_thresholds, name or "auc")


class CompositeMetric(MetricBase):
    """Several figures of the same predictions and labels."""

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


__all__ = ["Accuracy", "Auc", "CompositeMetric", "MetricBase", "Precision", "Recall"]

__getattr__ = missing(__name__)
