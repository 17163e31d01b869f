"""Tensors, the tape, and backward passes."""

from app.tensor.backward import backward, grad
from app.tensor.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from app.tensor.tensor import Parameter, Tensor, to_tensor

__all__ = [
    "Parameter",
    "Tensor",
    "backward",
    "enable_grad",
    "grad",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
    "to_tensor",
]
