"""Persistable variables of a Program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app import nn
from app.graph import Variable, default_main_program, default_startup_program, static_mode
from app.nn.parameter import initialise
from app.ops.creation import fill_constant
from app.ops.dtype import canonical


def create_parameter(
    shape: Sequence[int],
    dtype: Any = "float32",
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Any = None,
) -> Any:
    """Create a parameter of the default Program, initialised by the default startup Program."""
    with static_mode():
        return nn.create_parameter(shape, dtype, name, attr, is_bias, default_initializer)


def create_global_var(
    shape: Sequence[int],
    value: float,
    dtype: Any,
    name: str | None = None,
) -> Variable:
    """Create a variable that is not trained, set to a number by the default startup Program."""
    name = name or default_main_program().global_block().new_name("global_var")
    attributes = {"shape": tuple(int(size) for size in shape), "value": value, "dtype": canonical(dtype)}
    initialise(default_startup_program(), fill_constant, attributes, name)
    block = default_main_program().global_block()
    return block.create_var(name, shape, dtype, persistable=True, stop_gradient=True)
