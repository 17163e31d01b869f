"""The optimiser and the schedule that a configuration names."""

from __future__ import annotations

from typing import Any

from app.optimizer import SGD, Adam, Momentum, Optimizer, lr
from app.training.config import TrainConfig


def schedule_of(config: TrainConfig) -> lr.LRScheduler:
    """How the learning rate goes."""
    if config.schedule == "cosine":
        return lr.CosineAnnealingDecay(config.learning_rate, config.epochs)
    if config.schedule == "linear":
        return lr.PolynomialDecay(config.learning_rate, config.epochs, end_lr=0.0)
    return lr.LRScheduler(config.learning_rate)


def optimizer_of(config: TrainConfig, schedule: lr.LRScheduler, parameters: list[Any]) -> Optimizer:
    """What changes the parameters."""
    if config.optimizer == "momentum":
        return Momentum(schedule, config.momentum, parameters, weight_decay=config.weight_decay)
    kind = Adam if config.optimizer == "adam" else SGD
    return kind(schedule, parameters=parameters, weight_decay=config.weight_decay)
