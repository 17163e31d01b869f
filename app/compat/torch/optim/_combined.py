"""Schedulers made of schedulers: one after another, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from app.compat.torch.optim._optimizer import OptimizerError
from app.compat.torch.optim._scheduler import LRScheduler


class SequentialLR(LRScheduler):
    """The first scheduler up to the first milestone, the next from there on, and so forth."""

    def __init__(self, optimizer: Any, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1):
        if len(milestones) != len(schedulers) - 1:
            raise OptimizerError(
                f"SequentialLR needs one milestone less than schedulers, found {len(milestones)} for {len(schedulers)}"
            )
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def _begin(self) -> None:
        self.last_epoch = 0
        self._schedulers[0].restart()
        self._last_lr = self._rates_now()

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        if index and self._milestones[index - 1] == self.last_epoch:
            self._schedulers[index].restart()
        else:
            self._schedulers[index].step()
        self._last_lr = self._rates_now()

    def state_dict(self) -> dict[str, Any]:
        return {"last_epoch": self.last_epoch, "_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go to the epoch that a scheduler like this one was in."""
        self.last_epoch = state_dict["last_epoch"]
        at_work = bisect_right(self._milestones, self.last_epoch)
        for index in sorted(range(len(self._schedulers)), key=lambda index: index == at_work):
            self._schedulers[index].load_state_dict(state_dict["_schedulers"][index])


class ChainedScheduler(LRScheduler):
    """Schedulers that all go on at every step."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Any = None):
        self._schedulers = list(schedulers)
        self.optimizer = optimizer or self._schedulers[0].optimizer
        self._last_lr = self._rates_now()

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates_now()

    def state_dict(self) -> dict[str, Any]:
        return {"_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go to the epochs that schedulers like these were in."""
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)
