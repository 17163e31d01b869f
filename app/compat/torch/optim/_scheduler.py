"""What PyTorch's schedulers of learning rates have in common."""

from __future__ import annotations

from typing import Any


class LRScheduler:
    """The base: `get_lr` says the rates of `last_epoch`, one for each group of parameters, and `step` sets them."""

    def __init__(self, optimizer: Any, last_epoch: int = -1):
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._begin()

    def _begin(self) -> None:
        self.step()

    def restart(self) -> None:
        """Begin again at the first epoch, whatever the rates are now."""
        self.last_epoch = -1
        for group, rate in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            group["lr"] = rate
        self._begin()

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`; schedulers say how they are computed."""
        raise NotImplementedError(f"{type(self).__name__} needs a get_lr() that says the rates of an epoch")

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate
        self._last_lr = self._rates_now()

    def _rates_now(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The rates that the last step set, one for each group of parameters."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs), "_last_lr": self.get_last_lr()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go to the epoch that a scheduler like this one was in."""
        self.base_lrs = list(state_dict["base_lrs"])
        self.step(state_dict["last_epoch"])
        self._last_lr = list(state_dict["_last_lr"])
        for group, rate in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            group["lr"] = rate


class Scheduled(LRScheduler):
    """A scheduler whose rates are those of a schedule of the framework for each group.

    Where something else changed a rate meanwhile, another scheduler perhaps, it is changed by the same ratio,
    unless rates are `absolute`.
    """

    absolute = False

    def _begin(self) -> None:
        self._schedules = [self._schedule(rate) for rate in self.base_lrs]
        self._told: list[float] = []
        self.step()

    def _schedule(self, rate: float) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs to say how the rate {rate} changes")

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        before = self._told or list(self.base_lrs)
        for schedule in self._schedules:
            if schedule.last_epoch != self.last_epoch:
                schedule.step(self.last_epoch)
        self._told = [schedule() for schedule in self._schedules]
        return [
            told if self.absolute or rate == old or not old else rate * told / old
            for rate, told, old in zip(self._rates_now(), self._told, before, strict=True)
        ]
