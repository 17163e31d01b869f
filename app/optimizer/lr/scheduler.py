"""The base class of learning-rate schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.errors import AppError
from app.tensor.modes import modes


class LRScheduler:
    """The base class. `get_lr` returns the rate of `last_epoch`; calling the schedule returns the current rate."""

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False):
        self.base_lr = float(learning_rate)
        self.last_lr = float(learning_rate)
        self.last_epoch = last_epoch
        self.verbose = verbose
        self.step()

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to the given one."""
        if modes().tracer is not None:
            raise AppError("a schedule's step() cannot be part of a traced function; call it outside of the function")
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.last_lr = self.get_lr()
        self._tell()

    def _tell(self) -> None:
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def get_lr(self) -> float:
        """The rate of `last_epoch`; subclasses compute it."""
        return self.base_lr

    def __call__(self) -> float:
        return self.last_lr

    # State, for a file

    def state_keys(self) -> list[str]:
        """The attributes that make up the state."""
        return ["last_epoch", "last_lr"]

    def state_dict(self) -> dict[str, Any]:
        """The state, by attribute."""
        return {key: getattr(self, key) for key in self.state_keys()}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the state that `state_dict` returned."""
        missing = [key for key in self.state_keys() if key not in state_dict]
        if missing:
            raise AppError(f"{type(self).__name__}.set_state_dict: {', '.join(missing)} missing in {dict(state_dict)}")
        for key in self.state_keys():
            setattr(self, key, state_dict[key])
