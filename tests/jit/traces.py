"""Small Tensors, and functions that are traced without compiling."""

from __future__ import annotations

import numpy as np

import app
from app.jit import to_static


def tensor(*shape, grad=False, value=1.0):
    return app.to_tensor(np.full(shape, value, "float32"), stop_gradient=not grad)


def double(x):
    return x * 2


def static(function=double, **settings):
    return to_static(function, backend="reference", **settings)
