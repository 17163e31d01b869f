"""Rates that rise and fall while momentum falls and rises: one cycle, or many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.compat.torch.optim._optimizer import OptimizerError
from app.compat.torch.optim._scheduler import Scheduled
from app.optimizer import lr


class _Wave(Scheduled):
    """A schedule of rates, and one of momentum, for each group."""

    absolute = True

    def __init__(self, optimizer: Any, rates: list[lr.LRScheduler], momenta: list[lr.LRScheduler], last_epoch: int):
        kinds = [name for name in ("betas", "momentum") if name in optimizer.defaults]
        if momenta and not kinds:
            raise OptimizerError("the optimizer has no momentum or betas to change; pass cycle_momentum=False")
        self._momentum = kinds[0] if momenta else ""
        self._rates, self._momenta = rates, momenta
        for group, schedule in zip(optimizer.param_groups, rates, strict=True):
            group["initial_lr"] = schedule.base_lr
        super().__init__(optimizer, last_epoch)

    def _begin(self) -> None:
        self._schedules, self._told = self._rates, []
        self.step()

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next step of training."""
        super().step(epoch)
        for group, schedule in zip(self.optimizer.param_groups, self._momenta, strict=False):
            schedule.step(self.last_epoch)
            now = schedule()
            group[self._momentum] = (now, *group["betas"][1:]) if self._momentum == "betas" else now


def _of_each(optimizer: Any, setting: Any) -> list[float]:
    """A setting for every group of parameters, or a list with one for each."""
    listed = list(setting) if isinstance(setting, (list, tuple)) else [setting] * len(optimizer.param_groups)
    if len(listed) != len(optimizer.param_groups):
        raise OptimizerError(f"expected {len(optimizer.param_groups)} values, one a group, found {len(listed)}")
    return [float(value) for value in listed]


class OneCycleLR(_Wave):
    """A rise to `max_lr` over a part of all steps, then a fall; momentum falls and rises meanwhile."""

    def __init__(
        self,
        optimizer: Any,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise OptimizerError("OneCycleLR needs total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        self.total_steps = total_steps
        if total_steps <= 0 or not 0 <= pct_start <= 1:
            raise OptimizerError(f"OneCycleLR: found total_steps={total_steps}, pct_start={pct_start}")
        way: dict[str, Any] = {"phase_pct": pct_start, "anneal_strategy": anneal_strategy, "three_phase": three_phase}
        rates: list[lr.LRScheduler] = [
            lr.OneCycleLR(top, total_steps, div_factor, top / div_factor / final_div_factor, **way)
            for top in _of_each(optimizer, max_lr)
        ]
        pairs = zip(_of_each(optimizer, base_momentum), _of_each(optimizer, max_momentum), strict=True)
        momenta = [lr.OneCycleLR(low, total_steps, low / high, high, **way) for low, high in pairs]
        super().__init__(optimizer, rates, list(momenta) if cycle_momentum else [], last_epoch)

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next step of training."""
        if self.last_epoch + 1 >= self.total_steps + 1:
            raise OptimizerError(f"OneCycleLR: all {self.total_steps} steps are made; total_steps says how many")
        super().step(epoch)


class CyclicLR(_Wave):
    """Rises from `base_lr` to `max_lr` and falls, again and again; momentum falls and rises meanwhile."""

    def __init__(
        self,
        optimizer: Any,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ):
        def waves(starts: Any, tops: Any) -> list[lr.LRScheduler]:
            pairs = zip(_of_each(optimizer, starts), _of_each(optimizer, tops), strict=True)
            way = (step_size_up, step_size_down, mode, gamma, scale_fn, scale_mode)
            return [lr.CyclicLR(start, top, *way) for start, top in pairs]

        momenta = waves(max_momentum, base_momentum) if cycle_momentum else []
        super().__init__(optimizer, waves(base_lr, max_lr), momenta, last_epoch)
