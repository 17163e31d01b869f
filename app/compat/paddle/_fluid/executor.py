"""paddle.fluid.Executor, whose results turn into numbers as Paddle 1's programs expect."""

from __future__ import annotations

from typing import Any

import numpy as np

from app import engine


class Fetched(np.ndarray):
    """An array that converts to a number with one element of any shape; NumPy requires shape ()."""

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())


class Executor(engine.Executor):
    """Runs Programs, as the framework's Executor does."""

    def run(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Run a Program once with `feed`; return the values of the variables in `fetch_list`."""
        return [value.view(Fetched) for value in super().run(*args, **kwargs)]
