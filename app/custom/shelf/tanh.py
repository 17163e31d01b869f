"""Hyperbolic tangent: plain NumPy functions, hooked in with `py_func` as in Paddle's own example.

The way for code that only Python can run, as of a library without Numba: any function on arrays will do. It is
called between the compiled parts of the network, which costs more; `python -m app check` tells where it would compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import app


def tanh_forward(x: np.ndarray) -> np.ndarray:
    return np.tanh(x)


def tanh_backward(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return dy * (1 - y * y)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent. Works on Tensors and in Programs."""
    out = app.static.InputSpec.from_tensor(x)
    told: dict[str, Any] = {"row_by_row": True, "onnx": "Tanh", "like": "tanh"}
    return app.static.py_func(tanh_forward, x, out, tanh_backward, skip_vars_in_backward_input=x, **told)
