"""Learning rates that change: each schedule is advanced by `step()`, usually once an epoch."""

from app.optimizer.lr.decays import (
    CosineAnnealingDecay,
    CosineAnnealingWarmRestarts,
    ExponentialDecay,
    InverseTimeDecay,
    LambdaDecay,
    LinearLR,
    MultiplicativeDecay,
    MultiStepDecay,
    NaturalExpDecay,
    NoamDecay,
    PiecewiseDecay,
    PolynomialDecay,
    StepDecay,
)
from app.optimizer.lr.plateau import ReduceOnPlateau
from app.optimizer.lr.scheduler import LRScheduler
from app.optimizer.lr.waves import CyclicLR, LinearWarmup, OneCycleLR

__all__ = [
    "CosineAnnealingDecay",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LRScheduler",
    "LambdaDecay",
    "LinearLR",
    "LinearWarmup",
    "MultiStepDecay",
    "MultiplicativeDecay",
    "NaturalExpDecay",
    "NoamDecay",
    "OneCycleLR",
    "PiecewiseDecay",
    "PolynomialDecay",
    "ReduceOnPlateau",
    "StepDecay",
]


def __dir__() -> list[str]:
    return __all__
