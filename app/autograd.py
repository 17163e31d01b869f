"""Gradients of Tensors, and custom operators that bring their own."""

from app.custom.gradcheck import gradcheck, gradgradcheck
from app.custom.pylayer import Function, PyLayer, once_differentiable
from app.tensor import backward, enable_grad, grad, is_grad_enabled, no_grad, set_grad_enabled

__all__ = [
    "Function",
    "PyLayer",
    "backward",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "is_grad_enabled",
    "no_grad",
    "once_differentiable",
    "set_grad_enabled",
]


def __dir__() -> list[str]:
    return __all__
