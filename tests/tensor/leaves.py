"""Tensors to begin tests of gradients with."""

from __future__ import annotations

from app import Tensor, to_tensor


def leaf(*numbers: float, dtype: str = "float64") -> Tensor:
    return to_tensor(list(numbers), dtype, stop_gradient=False)
