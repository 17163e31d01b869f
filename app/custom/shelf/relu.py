"""ReLU as a custom operator: two Numba functions of whole arrays, hooked into a network with `py_func`.

The way for programs of Paddle that hook functions in like this, and where the loop is to be written by hand. The
backward function gets less to carry along if it can do without the input, as here: it is skipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

import app


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
        return relu(x.astype("float32")).astype("float16")
    out = app.static.InputSpec.from_tensor(x)
    told: dict[str, Any] = {"row_by_row": True, "onnx": "Relu", "like": "relu"}
    return app.static.py_func(relu_forward, x, out, relu_backward, skip_vars_in_backward_input=x, **told)
