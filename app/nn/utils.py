"""Functions that work on all gradients or parameters of a network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from app.errors import AppError
from app.nn.clip import in_single, like
from app.ops.arithmetic import add_n
from app.ops.joining import stack
from app.ops.norms import norm
from app.ops.reduction import max_
from app.ops.rounding import clip
from app.tensor import Tensor, no_grad

__all__ = ["clip_grad_norm_", "clip_grad_value_"]


def __dir__() -> list[str]:
    return __all__


class GradientsError(AppError, RuntimeError):
    """Gradients that contain NaN or infinity."""


def _listed(parameters: Any) -> list[Any]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


@no_grad()
def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale all gradients down by one factor if their norm, taken together, exceeds `max_norm`. Returns the norm."""
    listed = _listed(parameters)
    found = [parameter for parameter in listed if parameter.grad is not None]
    total: Tensor
    if not found:
        total = Tensor(np.zeros((), "float32"))
        return total
    p = float(norm_type)
    sizes = [norm(in_single(parameter.grad), p) for parameter in found]
    total = max_(stack(sizes)) if math.isinf(p) else add_n([size**p for size in sizes]) ** (1.0 / p)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise GradientsError(f"clip_grad_norm_: the norm of the gradients is {float(total)}")
    share = clip(float(max_norm) / (total + 1e-6), max=1.0)
    for parameter in found:
        parameter.grad = parameter.grad * like(share, parameter.grad)
    return like(total, found[0].grad)


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Clip each element of each gradient to the range from `-clip_value` to `clip_value`."""
    for parameter in _listed(parameters):
        if parameter.grad is not None:
            parameter.grad = clip(parameter.grad, -float(clip_value), float(clip_value))
