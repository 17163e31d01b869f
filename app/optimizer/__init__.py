"""Optimisers and learning-rate schedules."""

from typing import NoReturn

from app.ops.gone import without
from app.optimizer import lr
from app.optimizer.kinds import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    Momentum,
    RMSProp,
)
from app.optimizer.optimizer import Optimizer

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Momentum",
    "Optimizer",
    "RMSProp",
    "lr",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(without(__name__, name))
