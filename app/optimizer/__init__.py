"""Optimisers and learning-rate schedules."""

from app.optimizer import lr
from app.optimizer.kinds import (
    SGD,
    Adam,
    AdamW,
    Momentum,
    RMSProp,
)
from app.optimizer.optimizer import Optimizer

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Momentum",
    "Optimizer",
    "RMSProp",
    "lr",
]


def __dir__() -> list[str]:
    return __all__
