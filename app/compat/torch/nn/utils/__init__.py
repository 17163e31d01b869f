"""torch.nn.utils"""

from __future__ import annotations

from typing import Any

import app
from app.compat.missing import missing


def _listed(parameters: Any) -> list[Any]:
    return [parameters] if hasattr(parameters, "dtype") else list(parameters)


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0) -> Any:
    """Make gradients smaller together, until their norm is at most `max_norm`; gives the norm that they had."""
    gradients = [p.grad for p in _listed(parameters) if p.grad is not None]
    with app.no_grad():
        total = app.norm(app.stack([app.norm(g, norm_type) for g in gradients]), norm_type)
        factor = app.clip(max_norm / (total + 1e-6), max=1.0)
        for gradient in gradients:
            gradient.mul_(factor)
    return total


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Keep every element of the gradients between two numbers."""
    with app.no_grad():
        for parameter in _listed(parameters):
            if parameter.grad is not None:
                parameter.grad.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Any) -> Any:
    """All parameters in one vector."""
    return app.concat([app.flatten(p) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Any) -> None:
    """Give parameters the numbers of a vector, in order."""
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].detach().reshape(parameter.shape)
        start = end


__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]

__getattr__ = missing(__name__)
