"""Schedules that compute the rate from the number of the epoch."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.errors import AppError
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


class MultiStepDecay(LRScheduler):
    """Multiply the rate by `gamma` at each epoch in `milestones`."""

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
    """`values[i]` between two boundaries: the first before the first boundary, the last from the last one on."""

    def __init__(self, boundaries: Sequence[int], values: Sequence[float], last_epoch: int = -1, verbose: bool = False):
        if len(values) != len(boundaries) + 1:
            raise AppError(f"PiecewiseDecay: {len(boundaries)} boundaries need {len(boundaries) + 1} values, "
                           f"found {len(values)}")  # fmt: skip
        if list(boundaries) != sorted(set(boundaries)):
            raise AppError(f"PiecewiseDecay: boundaries must rise, found {list(boundaries)}")
        self.boundaries, self.values = list(boundaries), [float(value) for value in values]
        super().__init__(self.values[0], last_epoch, verbose)

    def get_lr(self) -> float:
        return self.values[bisect.bisect_right(self.boundaries, self.last_epoch)]


class ExponentialDecay(LRScheduler):
    """Multiply the rate by `gamma` every epoch."""

    def __init__(self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False):
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma**self.last_epoch


class NaturalExpDecay(ExponentialDecay):
    """Multiply the rate by `exp(-gamma)` every epoch."""

    def get_lr(self) -> float:
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(ExponentialDecay):
    """Divide the initial rate by `1 + gamma * epoch`."""

    def get_lr(self) -> float:
        return self.base_lr / (1.0 + self.gamma * self.last_epoch)


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


class LinearWarmup(LRScheduler):
    """Linear warm-up: from `start_lr` to `end_lr` over `warmup_steps` epochs, then the given rate or schedule."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        warmup_steps: int,
        start_lr: float,
        end_lr: float,
        last_epoch: int = -1,
        verbose: bool = False,
    ):
        if end_lr <= start_lr:
            raise AppError(f"LinearWarmup: end_lr must be above start_lr, found {end_lr} and {start_lr}")
        self.learning_rate = learning_rate
        self.warmup_steps, self.start_lr, self.end_lr = warmup_steps, start_lr, end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.last_epoch < self.warmup_steps:
            return self.start_lr + (self.end_lr - self.start_lr) * self.last_epoch / self.warmup_steps
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return float(self.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        """The state of this schedule and of the one after it."""
        state = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            state["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the state that `state_dict` returned."""
        super().set_state_dict(state_dict)
        if isinstance(self.learning_rate, LRScheduler) and "LinearWarmup_LR" in state_dict:
            self.learning_rate.set_state_dict(state_dict["LinearWarmup_LR"])
