"""Swish: a function of single numbers, and nothing else. Its gradient is derived from its source.

The shortest way, and the one to begin with: `swish.gradient_source` shows what was derived.
"""

from __future__ import annotations

import numpy as np

import app


@app.custom_op(elementwise=True, like="silu")
def swish(x: float) -> float:
    """x * sigmoid(x)."""
    return x / (1 + np.exp(-x))
