"""Optimisers and learning-rate schedules."""

from app.optimizer import lr
from app.optimizer.kinds import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    AveragedSGD,
    Momentum,
    NAdam,
    RAdam,
    RMSProp,
    Rprop,
)
from app.optimizer.optimizer import Optimizer

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "AveragedSGD",
    "Momentum",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSProp",
    "Rprop",
    "lr",
]


def __dir__() -> list[str]:
    return __all__
