"""PyTorch's schedules of learning rates: one for all groups of an optimiser, over the framework's schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

from app.compat.torch.optim._optimizers import OptimizerError
from app.optimizer import lr


class LRScheduler:
    """The base: `get_lr` returns the rates of `last_epoch`, one for each group of parameters, and `step` sets them."""

    def __init__(self, optimizer: Any, last_epoch: int = -1):
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`; subclasses compute them."""
        raise NotImplementedError(f"{type(self).__name__} needs a get_lr() that returns the rates of an epoch")

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr())

    def _set(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = list(rates)

    def get_last_lr(self) -> list[float]:
        """The rates that the last step set, one for each group of parameters."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """The epoch and the rates."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs), "_last_lr": self.get_last_lr()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` of a schedule of the same class returned."""
        self.base_lrs, self.last_epoch = list(state_dict["base_lrs"]), state_dict["last_epoch"]
        self._set(state_dict["_last_lr"])


class _Schedule(LRScheduler):
    """A schedule of the framework for each group: `make` makes it from the group's rate.

    If something else changed a rate meanwhile, such as another schedule, its distance from `floor` is changed by the
    same factor, unless rates are `absolute`.
    """

    absolute = False
    floor = 0.0
    resumes_after = 0
    """For a schedule that is made with `last_epoch`: how many epochs later the rates of the groups are."""

    def __init__(self, optimizer: Any, make: Callable[[float], lr.LRScheduler], last_epoch: int = -1):
        self._make = make
        self._follow([group.get("initial_lr", group["lr"]) for group in optimizer.param_groups])
        if last_epoch != -1:
            self._go_to(last_epoch + self.resumes_after)
        super().__init__(optimizer, last_epoch)

    def _follow(self, rates: Sequence[float]) -> None:
        self._schedules: list[Any] = [self._make(rate) for rate in rates]
        self._scheduled = list(rates)

    def _go_to(self, epoch: int) -> None:
        for schedule in self._schedules:
            if schedule.last_epoch != epoch:
                schedule.step(epoch)
        self._scheduled = [schedule() for schedule in self._schedules]

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        before = self._scheduled
        self._go_to(self.last_epoch)
        now = [group["lr"] for group in self.optimizer.param_groups]
        return list(map(self._changed, now, before, self._scheduled))

    def _changed(self, rate: float, old: float, new: float) -> float:
        """A rate, where that of the schedule went from `old` to `new`."""
        if self.absolute or rate == old:
            return new
        if old == self.floor:
            return rate + new - old
        return self.floor + (rate - self.floor) * (new - self.floor) / (old - self.floor)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` of a schedule of the same class returned."""
        super().load_state_dict(state_dict)
        self._follow(self.base_lrs)
        self._go_to(self.last_epoch)


class LambdaLR(_Schedule):
    """Multiply the initial rate by `lr_lambda(epoch)`."""

    absolute = True

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1):
        groups = len(optimizer.param_groups)
        listed = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(listed) != groups:
            raise OptimizerError(f"LambdaLR: expected {groups} lr_lambdas, one for each group, found {len(listed)}")
        each = cycle(listed)
        super().__init__(optimizer, lambda rate: lr.LambdaDecay(rate, next(each)), last_epoch)


class StepLR(_Schedule):
    """Multiply the rate by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        super().__init__(optimizer, lambda rate: lr.StepDecay(rate, step_size, gamma), last_epoch)


class MultiStepLR(_Schedule):
    """Multiply the rate by `gamma` at each epoch in `milestones`."""

    def __init__(self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1):
        super().__init__(optimizer, lambda rate: lr.MultiStepDecay(rate, milestones, gamma), last_epoch)


class ExponentialLR(_Schedule):
    """Multiply the rate by `gamma` every epoch."""

    resumes_after = 1

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1):
        super().__init__(optimizer, lambda rate: lr.ExponentialDecay(rate, gamma), last_epoch)


class CosineAnnealingLR(_Schedule):
    """Cosine annealing: from the initial rate to `eta_min` along half a cosine, over `T_max` epochs."""

    resumes_after = 1

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.floor = eta_min
        super().__init__(optimizer, lambda rate: lr.CosineAnnealingDecay(rate, T_max, eta_min), last_epoch)
