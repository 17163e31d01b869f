"""Values and runs for tests of custom operators."""

from __future__ import annotations

from typing import Any

import numpy as np

import app
from app import static


def data(*numbers: Any, dtype: str = "float64") -> app.Tensor:
    return app.to_tensor(numbers, dtype, stop_gradient=False)


def variable(name: str, *shape: Any, dtype: str = "float32") -> static.Variable:
    made = static.data(name, shape, dtype)
    made.stop_gradient = False
    return made


def run(*fetched: Any, **feed: Any) -> list[np.ndarray]:
    return static.Executor().run(feed=feed, fetch_list=fetched)
