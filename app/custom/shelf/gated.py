"""A gate: an operator of two inputs, whose backward gives a gradient for each.

Use this way for operators that combine values. A configuration cannot put one between two layers, which have one value
between them; in a network of your own, split the output of a layer into values and gates:

    value, gate = opsmith.split(layer(x), 2, axis=-1)
    x = gated(value, gate)
"""

from __future__ import annotations

import numpy as np

import opsmith


@opsmith.custom_op(elementwise=True)
def gated(x: float, gate: float) -> float:
    """x * sigmoid(gate): the gate passes all, nothing, or a part."""
    return x / (1 + np.exp(-gate))


@gated.backward
def gated_grad(x: float, gate: float, dy: float) -> tuple[float, float]:
    s = 1 / (1 + np.exp(-gate))
    return dy * s, dy * x * s / (1 + np.exp(gate))
