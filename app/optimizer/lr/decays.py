"""Schedules that compute the rate from the number of the epoch."""

from __future__ import annotations

import math
from collections.abc import Callable

from app.optimizer.lr.scheduler import LRScheduler


class LambdaDecay(LRScheduler):
    """Multiply the initial rate by `lr_lambda(epoch)`."""

    def __init__(
        self, learning_rate: float, lr_lambda: Callable[[int], float], last_epoch: int = -1, verbose: bool = False
    ):
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class StepDecay(LRScheduler):
    """Multiply the rate by `gamma` every `step_size` epochs."""

    def __init__(
        self, learning_rate: float, step_size: int, gamma: float = 0.1, last_epoch: int = -1, verbose: bool = False
    ):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)


class CosineAnnealingDecay(LRScheduler):
    """Cosine annealing: from the initial rate to `eta_min` along half a cosine, over `T_max` epochs."""

    def __init__(
        self,
        learning_rate: float,
        T_max: int,  # noqa: N803 - Paddle's name
        eta_min: float = 0.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        share = 0.5 * (1.0 + math.cos(math.pi * self.last_epoch / self.T_max))
        return self.eta_min + (self.base_lr - self.eta_min) * share


class PolynomialDecay(LRScheduler):
    """From the initial rate to `end_lr` over `decay_steps` epochs along a polynomial of degree `power`.

    With `cycle`, `decay_steps` is extended to its next multiple whenever it has passed.
    """

    def __init__(
        self,
        learning_rate: float,
        decay_steps: int,
        end_lr: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ):
        self.decay_steps, self.end_lr, self.power, self.cycle = decay_steps, end_lr, power, cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        whole = self.decay_steps
        if self.cycle:
            whole *= max(1, math.ceil(self.last_epoch / self.decay_steps))
        left = 1.0 - min(self.last_epoch, whole) / whole
        return self.end_lr + (self.base_lr - self.end_lr) * left**self.power
