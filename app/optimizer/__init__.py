"""Optimisers and learning-rate schedules."""

from app.optimizer import lr
from app.optimizer.optimizer import SGD, Adam, Momentum, Optimizer

__all__ = ["SGD", "Adam", "Momentum", "Optimizer", "lr"]
