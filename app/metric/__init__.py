"""Metrics, accumulated over many batches."""

from app.metric.metrics import Accuracy, Metric, Precision, Recall, accuracy

__all__ = ["Accuracy", "Metric", "Precision", "Recall", "accuracy"]


def __dir__() -> list[str]:
    return __all__
