"""The third Legendre polynomial: a `Function`, which is a `PyLayer` in PyTorch's spelling.

Use this way if you come from PyTorch, whose tutorial has this class.
"""

from __future__ import annotations

from typing import Any

import opsmith


class Legendre3(opsmith.autograd.Function):
    """(5 x³ - 3 x) / 2."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return 0.5 * (5 * x**3 - 3 * x)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * x**2 - 1)


legendre3 = Legendre3  # operators of the shelf are found under the name of their file
