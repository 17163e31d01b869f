"""The exponential function: a `PyLayer`, whose forward and backward work on Tensors.

Use this way for a function that is composed of existing operators and has a gradient of its own: here backward uses
the result instead of computing it again. A PyLayer of a Paddle program works unchanged.
"""

from __future__ import annotations

from typing import Any

import opsmith


class Exp(opsmith.autograd.PyLayer):
    """e to the power of x."""

    like, onnx = "exp", "Exp"

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = opsmith.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (y,) = ctx.saved_tensor()
        return dy * y


exp = Exp  # operators of the shelf are found under the name of their file
