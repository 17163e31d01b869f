"""A gate: an operator of two inputs, whose backward gives a gradient for each.

The way for what brings values together. It takes two, so no configuration can put it between two layers; a network
of your own can, and split what one layer gives into values and gates:

    value, gate = app.split(layer(x), 2, axis=-1)
    x = gated(value, gate)
"""

from __future__ import annotations

import numpy as np

import app


@app.custom_op(elementwise=True)
def gated(x: float, gate: float) -> float:
    """x * sigmoid(gate): a gate lets through all, nothing, or a part."""
    return x / (1 + np.exp(-gate))


@gated.backward
def gated_grad(x: float, gate: float, dy: float) -> tuple[float, float]:
    s = 1 / (1 + np.exp(-gate))
    return dy * s, dy * x * s * (1 - s)
