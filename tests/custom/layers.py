"""PyLayers, and Tensors for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import app
from app.autograd import PyLayer


def data(*numbers: Any, stop_gradient: bool = False) -> app.Tensor:
    return app.to_tensor(numbers, "float64", stop_gradient=stop_gradient)


def layer(forward: Callable[..., Any], backward: Callable[..., Any]) -> type[PyLayer]:
    """A class of two functions."""
    return type("cus", (PyLayer,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


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


class Twice(PyLayer):
    """Doubles, and counts the runs of its backward."""

    runs = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, dy):
        Twice.runs += 1
        return dy * 2.0
