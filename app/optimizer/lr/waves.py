"""Rates that rise and fall: a warm-up before another schedule, one cycle, or many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.errors import AppError
from app.optimizer.lr.decays import along_cosine
from app.optimizer.lr.scheduler import LRScheduler


class LinearWarmup(LRScheduler):
    """From `start_lr` to `end_lr` along a line of `warmup_steps` epochs, then the rate, or the schedule, given."""

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
        """Where this schedule stands, and the one after it."""
        state = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            state["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to where `state_dict` of such a schedule stood."""
        super().set_state_dict(state_dict)
        if isinstance(self.learning_rate, LRScheduler) and "LinearWarmup_LR" in state_dict:
            self.learning_rate.set_state_dict(state_dict["LinearWarmup_LR"])


def _line(start: float, end: float, share: float) -> float:
    return start + (end - start) * share


class OneCycleLR(LRScheduler):
    """A rise to `max_learning_rate` over a part of `total_steps`, then a fall to `end_learning_rate`.

    With `three_phase` the fall to where the rise began takes as long as the rise, and a last phase the rest.
    """

    def __init__(
        self,
        max_learning_rate: float,
        total_steps: int,
        divide_factor: float = 25.0,
        end_learning_rate: float = 0.0001,
        phase_pct: float = 0.3,
        anneal_strategy: str = "cos",
        three_phase: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ):
        if anneal_strategy not in ("cos", "linear"):
            raise AppError(f"OneCycleLR: anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        self.total_steps = total_steps
        self._way = along_cosine if anneal_strategy == "cos" else _line
        first = max_learning_rate / divide_factor
        top = phase_pct * total_steps - 1
        points = [(0.0, first), (top, max_learning_rate)]
        if three_phase:
            points.append((2 * top, first))
        self._points = [*points, (total_steps - 1.0, end_learning_rate)]
        super().__init__(first, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.last_epoch >= self.total_steps:
            return self._points[-1][1]
        for (start, rate), (end, next_rate) in zip(self._points, self._points[1:], strict=False):
            if self.last_epoch <= end:
                return self._way(rate, next_rate, (self.last_epoch - start) / (end - start))
        return self._points[-1][1]


class CyclicLR(LRScheduler):
    """Rises from `base_learning_rate` to `max_learning_rate` and falls again and again; `mode` says how high.

    'triangular' always as high, 'triangular2' half as high each time, 'exp_range' lower by `exp_gamma` each epoch.
    """

    def __init__(
        self,
        base_learning_rate: float,
        max_learning_rate: float,
        step_size_up: int,
        step_size_down: int | None = None,
        mode: str = "triangular",
        exp_gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
        verbose: bool = False,
    ):
        modes: dict[str, tuple[Callable[[float], float], str]] = {
            "triangular": (lambda cycle: 1.0, "cycle"),
            "triangular2": (lambda cycle: 0.5 ** (cycle - 1), "cycle"),
            "exp_range": (lambda epoch: exp_gamma**epoch, "iterations"),
        }
        if mode not in modes:
            raise AppError(f"CyclicLR: mode is one of {', '.join(modes)}, not {mode!r}")
        self._scale, self._scale_of = modes[mode] if scale_fn is None else (scale_fn, scale_mode)
        self.max_lr = max_learning_rate
        self.up, self.down = step_size_up, step_size_up if step_size_down is None else step_size_down
        super().__init__(base_learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        cycle, place = divmod(self.last_epoch, self.up + self.down)
        height = place / self.up if place <= self.up else 1.0 - (place - self.up) / self.down
        scale = self._scale(cycle + 1 if self._scale_of == "cycle" else self.last_epoch)
        return self.base_lr + (self.max_lr - self.base_lr) * height * scale
