"""paddle.fluid.Executor, whose results turn into numbers as Paddle 1's programs expect."""

from __future__ import annotations

from typing import Any

import numpy as np

from app import engine


class Fetched(np.ndarray):
    """An array of one element is a number for `float()`, `int()` and `"%f"`, whatever its shape; NumPy wants ()."""

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())


class Executor(engine.Executor):
    """Runs Programs, as the framework's Executor does."""

    def run(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Run a Program once with the values fed; returns the values of the variables in `fetch_list`."""
        return [value.view(Fetched) for value in super().run(*args, **kwargs)]
