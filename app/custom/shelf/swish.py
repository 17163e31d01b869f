"""Swish: one function of single numbers. Its gradient is derived from its source.

This is the shortest way, and the one to begin with. `swish.gradient_source` shows the derived gradient.
"""

from __future__ import annotations

import numpy as np

import opsmith


@opsmith.custom_op(elementwise=True, like="silu")
def swish(x: float) -> float:
    """x * sigmoid(x)."""
    return x / (1 + np.exp(-x))
