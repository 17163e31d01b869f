"""Schedules of the learning rate. `step()` advances one, usually once an epoch."""

from app.optimizer.lr.decays import (
    CosineAnnealingDecay,
    ExponentialDecay,
    InverseTimeDecay,
    LambdaDecay,
    LinearWarmup,
    MultiStepDecay,
    NaturalExpDecay,
    PiecewiseDecay,
    PolynomialDecay,
    StepDecay,
)
from app.optimizer.lr.scheduler import LRScheduler

__all__ = [
    "CosineAnnealingDecay",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LRScheduler",
    "LambdaDecay",
    "LinearWarmup",
    "MultiStepDecay",
    "NaturalExpDecay",
    "PiecewiseDecay",
    "PolynomialDecay",
    "StepDecay",
]


def __dir__() -> list[str]:
    return __all__
