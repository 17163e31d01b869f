"""paddle.fluid.layers.learning_rate_scheduler: schedules that go on with every run of a Program, or eager step."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from app.optimizer import lr


def _each_step(schedule: lr.LRScheduler) -> lr.LRScheduler:
    schedule.each_step = True
    return schedule


def _shares(rate: float, decay_steps: int, staircase: bool, factor: Callable[[float], float]) -> lr.LRScheduler:
    """The rate times a factor of how often `decay_steps` have passed."""
    return _each_step(
        lr.LambdaDecay(rate, lambda step: factor(step // decay_steps if staircase else step / decay_steps))
    )


def exponential_decay(learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False) -> Any:
    return _shares(learning_rate, decay_steps, staircase, lambda times: decay_rate**times)


def natural_exp_decay(learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False) -> Any:
    return _shares(learning_rate, decay_steps, staircase, lambda times: math.exp(-decay_rate * times))


def inverse_time_decay(learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False) -> Any:
    return _shares(learning_rate, decay_steps, staircase, lambda times: 1.0 / (1.0 + decay_rate * times))


def cosine_decay(learning_rate: float, step_each_epoch: int, epochs: int) -> Any:
    return _shares(learning_rate, step_each_epoch, True, lambda epoch: (math.cos(epoch * math.pi / epochs) + 1.0) / 2)


def polynomial_decay(
    learning_rate: float,
    decay_steps: int,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
) -> Any:
    return _each_step(lr.PolynomialDecay(learning_rate, decay_steps, end_learning_rate, power, cycle))


def piecewise_decay(boundaries: Sequence[int], values: Sequence[float]) -> Any:
    return _each_step(lr.PiecewiseDecay(boundaries, values))


def linear_lr_warmup(learning_rate: Any, warmup_steps: int, start_lr: float, end_lr: float) -> Any:
    return _each_step(lr.LinearWarmup(learning_rate, warmup_steps, start_lr, end_lr))
