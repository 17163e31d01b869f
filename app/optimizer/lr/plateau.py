"""A schedule that lowers the rate when a metric stops improving."""

from __future__ import annotations

import math
from typing import Any

from app.errors import AppError
from app.optimizer.lr.scheduler import LRScheduler


class ReduceOnPlateau(LRScheduler):
    """The rate times `factor` once a metric has not improved for more than `patience` epochs.

    `step(metric)` reports it. It has improved if it is lower (with mode 'max', higher) than the best so far by more
    than `threshold`, relative to the best or, with threshold_mode 'abs', absolute. For `cooldown` epochs after the
    rate was lowered, metrics do not count.
    """

    def __init__(
        self,
        learning_rate: float,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        epsilon: float = 1e-8,
        verbose: bool = False,
    ):
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise AppError(
                f"ReduceOnPlateau: mode is 'min' or 'max' and threshold_mode 'rel' or 'abs', not {mode!r} and "
                f"{threshold_mode!r}"
            )
        if factor >= 1.0:
            raise AppError(f"ReduceOnPlateau: factor must be below 1, found {factor}")
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.min_lr, self.epsilon = cooldown, min_lr, epsilon
        self.cooldown_counter, self.num_bad_epochs = 0, 0
        self.best: float | None = None
        self.base_lr = self.last_lr = float(learning_rate)
        self.last_epoch, self.verbose = 0, verbose

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Report the metric of an epoch."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        metric = float(metrics)
        if math.isnan(metric):
            raise AppError(f"ReduceOnPlateau: the metric of epoch {self.last_epoch} is NaN")
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self.best is None or self._is_better(metric):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            lower = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - lower > self.epsilon:
                self.last_lr = lower
                self._tell()

    def _is_better(self, metric: float) -> bool:
        assert self.best is not None
        sign = 1.0 if self.mode == "min" else -1.0
        margin = self.threshold * (self.best if self.threshold_mode == "rel" else 1.0)
        return sign * metric < sign * self.best - (margin if self.threshold_mode == "abs" else sign * margin)

    def get_lr(self) -> float:
        return self.last_lr

    def state_keys(self) -> list[str]:
        return ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]
