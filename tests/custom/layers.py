"""Values, Variables and PyLayers for tests of custom operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import app
from app import static
from app.autograd import PyLayer


def data(*numbers: Any, dtype: str = "float64", stop_gradient: bool = False) -> app.Tensor:
    return app.to_tensor(numbers, dtype, stop_gradient=stop_gradient)


def variable(name: str, *shape: Any, dtype: str = "float32") -> static.Variable:
    x = static.data(name, shape, dtype)
    x.stop_gradient = False
    return x


def run(*fetched: Any, **feed: Any) -> list[np.ndarray]:
    return static.Executor().run(feed=feed, fetch_list=fetched)


def layer(forward: Callable[..., Any], backward: Callable[..., Any], base: type[PyLayer] = PyLayer) -> Any:
    """A class of two functions."""
    return type("cus", (base,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


class CusTanh(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = app.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (1 - app.square(y))
