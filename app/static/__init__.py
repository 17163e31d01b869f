"""Programs: building them, differentiating them, running them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.custom.py_func import py_func
from app.engine import Executor, Scope, global_scope, scope_guard
from app.graph import (
    Block,
    Operator,
    Program,
    Variable,
    append_backward,
    default_main_program,
    default_startup_program,
    gradients,
    program_guard,
)
from app.ops.dtype import canonical
from app.ops.loss import accuracy
from app.static import nn


def data(name: str, shape: Sequence[int | None], dtype: Any = "float32", lod_level: int = 0) -> Variable:
    """A variable that is fed at every run; -1 or None is an axis of any size."""
    block = default_main_program().global_block()
    return block.create_var(name, shape, dtype, is_data=True, stop_gradient=True)


class InputSpec:
    """A shape, an element type and perhaps a name: what is said of a value that does not exist yet."""

    def __init__(self, shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None):
        self.shape = tuple(-1 if size is None else int(size) for size in shape)
        self.dtype = canonical(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> InputSpec:
        """The shape and type of a Tensor or a Variable."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name)

    def __repr__(self) -> str:
        return f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name})"


__all__ = [
    "Block",
    "Executor",
    "InputSpec",
    "Operator",
    "Program",
    "Scope",
    "Variable",
    "accuracy",
    "append_backward",
    "data",
    "default_main_program",
    "default_startup_program",
    "global_scope",
    "gradients",
    "nn",
    "program_guard",
    "py_func",
    "scope_guard",
]
