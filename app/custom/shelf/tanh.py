"""Hyperbolic tangent: plain NumPy functions under `py_func`, as in Paddle's own example.

Use this way for any function on arrays. NumPy's operations on whole arrays are compiled; other code, such as a call of
another library, is called between the compiled parts of the network, which is slower: `opsmith check` says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opsmith


def tanh_forward(x: np.ndarray) -> np.ndarray:
    return np.tanh(x)


def tanh_backward(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return dy * (1 - y * y)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent. Works on Tensors and in Programs."""
    out = opsmith.static.InputSpec.from_tensor(x)
    options: dict[str, Any] = {"row_by_row": True, "onnx": "Tanh", "like": "tanh"}
    return opsmith.static.py_func(tanh_forward, x, out, tanh_backward, skip_vars_in_backward_input=x, **options)
