"""Learners: a network and its optimiser, as a Program run by an engine or eagerly."""

from __future__ import annotations

from app.run.activation import Activation
from app.run.config import Config
from app.run.learners.eager import EagerLearner
from app.run.learners.learner import Learner, PerIteration
from app.run.learners.program import ProgramLearner
from app.run.network import ImageShape

__all__ = ["Learner", "PerIteration", "ProgramLearner", "make_learner"]


def make_learner(config: Config, activation: Activation, image: ImageShape) -> Learner:
    """Make a learner with this activation. Its initial weights depend only on the configuration's seed."""
    kind = EagerLearner if config.engine == "eager" else ProgramLearner
    return kind(config, activation, image)
