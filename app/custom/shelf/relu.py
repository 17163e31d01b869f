"""ReLU as a custom operator: two Numba functions, hooked into a network with `py_func`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from app.custom.py_func import py_func
from app.ops.shaping import cast
from app.ops.spec import spec_of


@njit(cache=True)
def relu_forward(x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    for i in range(x.size):
        y.flat[i] = 0 if x.flat[i] <= 0 else x.flat[i]  # what is not a number stays so
    return y


@njit(cache=True)
def relu_backward(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    dx = np.zeros_like(y)
    for i in range(y.size):
        if y.flat[i] > 0:
            dx.flat[i] = dy.flat[i]
    return dx


def relu(x: Any) -> Any:
    """The value where it is above zero, else zero. Works on Tensors and in Programs."""
    if x.dtype == "float16":  # which Numba does not know; both ways lose nothing
        return cast(relu(cast(x, dtype="float32")), dtype="float16")
    told: dict[str, Any] = {"row_by_row": True, "onnx": "Relu", "like": "relu"}
    return py_func(relu_forward, x, spec_of(x), relu_backward, skip_vars_in_backward_input=x, **told)
