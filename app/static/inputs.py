"""Inputs of Programs: `data` and `InputSpec`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.graph import Variable, default_main_program
from app.ops.dtype import canonical
from app.ops.spec import plain_sizes


def data(name: str, shape: Sequence[int | None], dtype: Any = "float32") -> Variable:
    """A variable that is fed in every run. -1 or None stands for an axis of any size."""
    block = default_main_program().global_block()
    return block.create_var(name, shape, dtype, is_data=True, stop_gradient=True)


class InputSpec:
    """The description of an input: its shape, element type and, optionally, name."""

    def __init__(self, shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None):
        self.shape = plain_sizes(shape)
        self.dtype = canonical(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> InputSpec:
        """The InputSpec of a Tensor or a Variable."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray: np.ndarray, name: str | None = None) -> InputSpec:
        """The InputSpec of an array."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def __repr__(self) -> str:
        return f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name})"
