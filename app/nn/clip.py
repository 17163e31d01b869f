"""Gradient clipping: what an optimiser takes as `grad_clip`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.errors import OperatorError
from app.ops.arithmetic import add_n, maximum
from app.ops.dtype import canonical
from app.ops.math import sqrt, square
from app.ops.reduction import sum_
from app.ops.shaping import cast

Pairs = Sequence[tuple[Any, Any]]
"""Parameters with their gradients, None for one that has none."""


class ClipGradByGlobalNorm:
    """Scales all gradients down by one factor if their norm, taken together, exceeds `clip_norm`."""

    def __init__(self, clip_norm: float):
        self.clip_norm = float(clip_norm)
        if not self.clip_norm > 0:
            raise OperatorError(f"ClipGradByGlobalNorm: clip_norm must be above 0, found {clip_norm}")

    def __call__(self, params_grads: Pairs) -> Pairs:
        """The pairs with scaled gradients."""
        squares = [sum_(square(_in_single(gradient))) for _, gradient in params_grads if gradient is not None]
        if not squares:
            return params_grads
        factor = self.clip_norm / maximum(sqrt(add_n(squares)), self.clip_norm)
        return [
            (parameter, None if gradient is None else gradient * cast(factor, dtype=gradient.dtype))
            for parameter, gradient in params_grads
        ]


def _in_single(gradient: Any) -> Any:
    """A gradient of half precision, whose squares overflow from 256 on, in single precision; others unchanged."""
    return cast(gradient, dtype="float32") if canonical(gradient.dtype) == "float16" else gradient
