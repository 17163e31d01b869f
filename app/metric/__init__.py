"""Metrics, accumulated over many batches."""

from app.metric.metrics import Accuracy, Auc, Metric, Precision, Recall, accuracy

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]


def __dir__() -> list[str]:
    return __all__
