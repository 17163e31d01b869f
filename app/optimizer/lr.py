"""Learning rates that change: each schedule is advanced by `step()`, usually once an epoch."""

from __future__ import annotations

import math
from collections.abc import Callable


class LRScheduler:
    """The base: `get_lr` says the rate now."""

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False):
        self.base_lr = float(learning_rate)
        self.last_epoch = last_epoch + 1

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to the one given."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch

    def get_lr(self) -> float:
        return self.base_lr

    def __call__(self) -> float:
        return self.get_lr()


class LambdaDecay(LRScheduler):
    """The rate times what a function says of the epoch."""

    def __init__(self, learning_rate: float, lr_lambda: Callable[[int], float], last_epoch: int = -1):
        super().__init__(learning_rate, last_epoch)
        self.lr_lambda = lr_lambda

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class StepDecay(LRScheduler):
    """The rate times `gamma` after every `step_size` epochs."""

    def __init__(self, learning_rate: float, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        super().__init__(learning_rate, last_epoch)
        self.step_size, self.gamma = step_size, gamma

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)


class CosineAnnealingDecay(LRScheduler):
    """From the rate down to `eta_min` along half a cosine of `T_max` epochs."""

    def __init__(self, learning_rate: float, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):  # noqa: N803
        super().__init__(learning_rate, last_epoch)
        self.T_max, self.eta_min = T_max, eta_min

    def get_lr(self) -> float:
        share = 0.5 * (1.0 + math.cos(math.pi * self.last_epoch / self.T_max))
        return self.eta_min + (self.base_lr - self.eta_min) * share


class PolynomialDecay(LRScheduler):
    """From the rate down to `end_lr` over `decay_steps` epochs; a straight line at power 1."""

    def __init__(
        self, learning_rate: float, decay_steps: int, end_lr: float = 0.0001, power: float = 1.0, last_epoch: int = -1
    ):
        super().__init__(learning_rate, last_epoch)
        self.decay_steps, self.end_lr, self.power = decay_steps, end_lr, power

    def get_lr(self) -> float:
        left = 1.0 - min(self.last_epoch, self.decay_steps) / self.decay_steps
        return self.end_lr + (self.base_lr - self.end_lr) * left**self.power
