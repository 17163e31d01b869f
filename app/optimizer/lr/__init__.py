"""Schedules of the learning rate. `step()` advances one, usually once an epoch."""

from app.optimizer.lr.decays import (
    CosineAnnealingDecay,
    LambdaDecay,
    PolynomialDecay,
    StepDecay,
)
from app.optimizer.lr.scheduler import LRScheduler

__all__ = [
    "CosineAnnealingDecay",
    "LRScheduler",
    "LambdaDecay",
    "PolynomialDecay",
    "StepDecay",
]


def __dir__() -> list[str]:
    return __all__
