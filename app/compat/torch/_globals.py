"""Functions of `torch` that answer questions about Tensors, and `inference_mode`."""

from __future__ import annotations

from typing import Any

import app
from app.compat.torch._dtype import named
from app.compat.torch._tensor import TensorMethods
from app.ops import elementwise


def is_tensor(obj: Any) -> bool:
    """Whether something is a Tensor."""
    return isinstance(obj, TensorMethods)


def numel(input: Any) -> int:
    """How many elements a Tensor has."""
    return input.numel()


def is_floating_point(input: Any) -> bool:
    """Whether the elements are of a floating type."""
    return input.is_floating_point()


def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The common element type of two values, Tensors or numbers."""
    return named(elementwise.result_type([tensor1, tensor2]))


class inference_mode(app.no_grad):
    """Operators inside are not recorded."""

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):
            return super().__new__(cls, mode)
        return super().__new__(cls) if mode else app.enable_grad()
