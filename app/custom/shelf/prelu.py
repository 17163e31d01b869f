"""PReLU: an operator with a parameter that learns, as a `Layer` around an operator of two inputs.

Use this way for an operator with weights. A network makes one Layer for each of its hidden layers, so each has its own
slope, which is trained and saved with the other weights. The gradients of both inputs are derived.
"""

from __future__ import annotations

from typing import Any

import opsmith


@opsmith.custom_op(elementwise=True)
def sloped(x: float, slope: float) -> float:
    """x where it is positive, else x * slope."""
    return x if x > 0 else x * slope


class PReLU(opsmith.nn.Layer):
    """A leaky ReLU with a learned slope, which starts at 0.25."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = self.create_parameter([1], default_initializer=opsmith.nn.initializer.Constant(0.25))

    def forward(self, x: Any) -> Any:
        return sloped(x, self.slope)


prelu = PReLU  # operators of the shelf are found under the name of their file
