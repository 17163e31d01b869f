"""Rates that follow from the number of the epoch by a formula."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence

from app.errors import AppError
from app.optimizer.lr.scheduler import LRScheduler


class LambdaDecay(LRScheduler):
    """The rate times what a function says of the epoch."""

    def __init__(
        self, learning_rate: float, lr_lambda: Callable[[int], float], last_epoch: int = -1, verbose: bool = False
    ):
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(LambdaDecay):
    """The rate times what a function says of every epoch from the first on."""

    def get_lr(self) -> float:
        return self.base_lr * math.prod(self.lr_lambda(epoch) for epoch in range(1, self.last_epoch + 1))


class StepDecay(LRScheduler):
    """The rate times `gamma` after every `step_size` epochs."""

    def __init__(
        self, learning_rate: float, step_size: int, gamma: float = 0.1, last_epoch: int = -1, verbose: bool = False
    ):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepDecay(LRScheduler):
    """The rate times `gamma` from each of the epochs in `milestones` on."""

    def __init__(
        self,
        learning_rate: float,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ):
        if list(milestones) != sorted(set(milestones)):
            raise AppError(f"MultiStepDecay: milestones must rise, found {list(milestones)}")
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** bisect.bisect_right(self.milestones, self.last_epoch)


class PiecewiseDecay(LRScheduler):
    """The first of `values` before the first boundary, the next from there on, and so forth."""

    def __init__(self, boundaries: Sequence[int], values: Sequence[float], last_epoch: int = -1, verbose: bool = False):
        if len(values) != len(boundaries) + 1:
            raise AppError(f"PiecewiseDecay: {len(boundaries)} boundaries part {len(boundaries) + 1} values, "
                           f"found {len(values)}")  # fmt: skip
        self.boundaries, self.values = list(boundaries), [float(value) for value in values]
        super().__init__(self.values[0], last_epoch, verbose)

    def get_lr(self) -> float:
        return self.values[bisect.bisect_right(self.boundaries, self.last_epoch)]


class ExponentialDecay(LRScheduler):
    """The rate times `gamma` after every epoch."""

    def __init__(self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False):
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma**self.last_epoch


class NaturalExpDecay(ExponentialDecay):
    """The rate times `exp(-gamma)` after every epoch."""

    def get_lr(self) -> float:
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(ExponentialDecay):
    """The rate over `1 + gamma * epoch`."""

    def get_lr(self) -> float:
        return self.base_lr / (1.0 + self.gamma * self.last_epoch)


class CosineAnnealingDecay(LRScheduler):
    """From the rate down to `eta_min` along half a cosine of `T_max` epochs."""

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
        return along_cosine(self.base_lr, self.eta_min, self.last_epoch / self.T_max)


def along_cosine(start: float, end: float, share: float) -> float:
    """The rate after a share of the half cosine from one rate to another."""
    return end + (start - end) * 0.5 * (1.0 + math.cos(math.pi * share))


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines from the rate down to `eta_min`, each `T_mult` times as long as the one before."""

    def __init__(
        self,
        learning_rate: float,
        T_0: int,  # noqa: N803 - Paddle's name
        T_mult: int = 1,  # noqa: N803 - Paddle's name
        eta_min: float = 0.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ):
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        length, passed = self.T_0, self.last_epoch
        while passed >= length:
            passed, length = passed - length, length * self.T_mult
        return along_cosine(self.base_lr, self.eta_min, passed / length)


class PolynomialDecay(LRScheduler):
    """From the rate down to `end_lr` over `decay_steps` epochs, or over as many times that as have begun.

    It is a straight line at power 1.
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


class LinearLR(LRScheduler):
    """From `start_factor` of the rate to `end_factor` of it along a line of `total_steps` epochs."""

    def __init__(
        self,
        learning_rate: float,
        total_steps: int,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ):
        self.total_steps, self.start_factor, self.end_factor = total_steps, start_factor, end_factor
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        share = min(self.last_epoch, self.total_steps) / self.total_steps
        return self.base_lr * (self.start_factor + (self.end_factor - self.start_factor) * share)


class NoamDecay(LRScheduler):
    """A rise over `warmup_steps`, then a fall with the root of the epoch."""

    def __init__(
        self,
        d_model: int,
        warmup_steps: int,
        learning_rate: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ):
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        rising = self.warmup_steps**-1.5 * self.last_epoch
        falling = self.last_epoch**-0.5 if self.last_epoch else 1.0
        return self.base_lr * self.d_model**-0.5 * min(falling, rising)
