"""torch.optim.lr_scheduler"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from app.compat.missing import missing
from app.compat.torch.optim._combined import ChainedScheduler, SequentialLR
from app.compat.torch.optim._scheduler import LRScheduler, Scheduled
from app.compat.torch.optim._waves import CyclicLR, OneCycleLR
from app.optimizer import lr

_REQUIRED = inspect.Parameter.empty
_ABSOLUTE = ("LambdaLR", "CosineAnnealingWarmRestarts")
"""Schedulers that set a rate whatever it was; the others change it."""


def _scheduler(name: str, made: Callable[..., Any], settings: dict[str, Any]) -> type[LRScheduler]:
    """A scheduler over what `made` makes of a rate and these settings, for which their defaults are given."""
    parameter = inspect.Parameter
    signature = inspect.Signature(
        [parameter(key, parameter.POSITIONAL_OR_KEYWORD, default=default) for key, default in settings.items()]
        + [parameter("last_epoch", parameter.POSITIONAL_OR_KEYWORD, default=-1)]
    )

    def __init__(self: Any, optimizer: Any, *args: Any, verbose: Any = None, **kwargs: Any) -> None:  # noqa: N807
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        last_epoch = given.arguments.pop("last_epoch")
        self._settings = dict(given.arguments)
        Scheduled.__init__(self, optimizer, last_epoch)

    def _schedule(self: Any, rate: float) -> Any:
        return made(rate, **self._settings)

    members: dict[str, Any] = {"__init__": __init__, "_schedule": _schedule, "absolute": name in _ABSOLUTE}
    members |= {"__doc__": made.__doc__, "__module__": __name__}
    return type(name, (Scheduled,), members)


def _constant(learning_rate: float, total_iters: int, factor: float) -> Any:
    """`factor` of the rate until so many epochs have passed, then the whole rate."""
    return lr.LambdaDecay(learning_rate, lambda epoch: factor if epoch < total_iters else 1.0)


def _polynomial(learning_rate: float, total_iters: int, power: float) -> Any:
    """From the rate down to zero over so many epochs; a straight line at power 1."""
    return lr.PolynomialDecay(learning_rate, total_iters, 0.0, power)


def _linear(learning_rate: float, start_factor: float, end_factor: float, total_iters: int) -> Any:
    """From one share of the rate to another along a line."""
    return lr.LinearLR(learning_rate, total_iters, start_factor, end_factor)


SCHEDULERS = {
    name: _scheduler(name, made, settings)
    for name, made, settings in (
        ("ConstantLR", _constant, {"factor": 1 / 3, "total_iters": 5}),
        ("CosineAnnealingLR", lr.CosineAnnealingDecay, {"T_max": _REQUIRED, "eta_min": 0.0}),
        (
            "CosineAnnealingWarmRestarts",
            lr.CosineAnnealingWarmRestarts,
            {"T_0": _REQUIRED, "T_mult": 1, "eta_min": 0.0},
        ),
        ("ExponentialLR", lr.ExponentialDecay, {"gamma": _REQUIRED}),
        ("LambdaLR", lr.LambdaDecay, {"lr_lambda": _REQUIRED}),
        ("LinearLR", _linear, {"start_factor": 1 / 3, "end_factor": 1.0, "total_iters": 5}),
        ("MultiStepLR", lr.MultiStepDecay, {"milestones": _REQUIRED, "gamma": 0.1}),
        ("MultiplicativeLR", lr.MultiplicativeDecay, {"lr_lambda": _REQUIRED}),
        ("PolynomialLR", _polynomial, {"total_iters": 5, "power": 1.0}),
        ("StepLR", lr.StepDecay, {"step_size": _REQUIRED, "gamma": 0.1}),
    )
}
"""Every scheduler whose rate follows from the epoch, with PyTorch's settings and their defaults."""


class ReduceLROnPlateau(Scheduled):
    """Lower rates once a figure no longer gets better."""

    def __init__(self, optimizer: Any, mode: str = "min", factor: float = 0.1, patience: int = 10, **settings: Any):
        settings["epsilon"] = settings.pop("eps", 1e-8)
        self._settings = {"mode": mode, "factor": factor, "patience": patience, **settings}
        super().__init__(optimizer)

    def _schedule(self, rate: float) -> Any:
        return lr.ReduceOnPlateau(rate, **self._settings)

    def _begin(self) -> None:
        self._schedules = [self._schedule(rate) for rate in self.base_lrs]
        self.last_epoch, self._last_lr = 0, self._rates_now()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Tell the figure of an epoch."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, schedule in zip(self.optimizer.param_groups, self._schedules, strict=True):
            schedule.step(metrics)
            group["lr"] = schedule()
        self._last_lr = self._rates_now()


globals().update(SCHEDULERS)

__all__ = [
    "ChainedScheduler",
    "CyclicLR",
    "LRScheduler",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    *SCHEDULERS,
]

__getattr__ = missing(__name__)
