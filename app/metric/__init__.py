"""Metrics, accumulated over many batches."""

from app.metric.metrics import Accuracy, Metric, Precision, Recall, accuracy
from app.ops.gone import refuse_missing

__all__ = ["Accuracy", "Metric", "Precision", "Recall", "accuracy"]


def __dir__() -> list[str]:
    return __all__


__getattr__ = refuse_missing(__name__)
