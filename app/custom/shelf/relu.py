"""ReLU as a custom operator: two Numba functions of whole arrays, put into a network with `py_func`.

Use this way for Paddle programs with `py_func`, and to write the loop by hand. A backward function that does not need
the input, as here, skips it, so that the input need not be kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

import opsmith


@njit
def relu_forward(x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    for i in range(x.size):
        y.flat[i] = 0 if x.flat[i] <= 0 else x.flat[i]  # NaN stays NaN
    return y


@njit
def relu_backward(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    dx = np.zeros_like(y)
    for i in range(y.size):
        if y.flat[i] > 0:
            dx.flat[i] = dy.flat[i]
    return dx


def relu(x: Any) -> Any:
    """x where it is positive, else zero. Works on Tensors and in Programs."""
    if x.dtype == "float16":  # which Numba does not have; neither conversion loses anything
        return relu(x.astype("float32")).astype("float16")
    out = opsmith.static.InputSpec.from_tensor(x)
    options: dict[str, Any] = {"row_by_row": True, "onnx": "Relu", "like": "relu"}
    return opsmith.static.py_func(relu_forward, x, out, relu_backward, skip_vars_in_backward_input=x, **options)
