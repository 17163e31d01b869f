"""Creating parameters: initialised Tensors, or Variables that a startup Program initialises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.errors import AppError
from app.graph import names
from app.graph.defaults import default_main_program, default_startup_program, in_dynamic_mode
from app.nn.initializer import Constant, Initializer, XavierUniform, first_value
from app.ops.definition import OpDef, apply
from app.ops.dtype import canonical, get_default_dtype, is_float
from app.tensor import Parameter
from app.tensor.modes import modes


class ParamAttr:
    """The settings of a parameter: name, initialiser, and whether it is trained."""

    def __init__(
        self,
        name: str | None = None,
        initializer: Initializer | None = None,
        trainable: bool = True,
    ):
        self.name = name
        self.initializer = initializer
        self.trainable = trainable


def as_param_attr(attr: Any) -> ParamAttr:
    """Convert what layers accept to a ParamAttr: None, a name, an initializer or a ParamAttr."""
    if isinstance(attr, ParamAttr):
        return attr
    if isinstance(attr, str):
        return ParamAttr(name=attr)
    if attr is None or attr is True or callable(attr):
        return ParamAttr(initializer=None if attr is True else attr)
    raise AppError(f"{attr!r} does not describe a parameter: expected a ParamAttr, a name or an initializer")


def create_parameter(
    shape: Sequence[int],
    dtype: Any = None,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Any:
    """Create a parameter, by default with XavierUniform, or with zeros for a bias."""
    if name is not None and not isinstance(name, str):
        raise AppError(f"create_parameter: its third argument, the name, is text, found {name!r}; write attr={name!r}")
    attr = as_param_attr(attr)
    dtype = canonical(dtype or get_default_dtype())
    zeros = is_bias or not is_float(dtype)
    default = default_initializer or (Constant(0.0) if zeros else XavierUniform())
    shape = tuple(int(size) for size in shape)
    definition, attributes = first_value(attr.initializer or default, shape, dtype)
    name = attr.name or name or new_name("param")
    if in_dynamic_mode():
        return Parameter(np.asarray(apply(definition, [], attributes)), name, attr.trainable)
    return _in_program(definition, attributes, name, attr.trainable)


def new_name(key: str) -> str:
    """A generated name for a parameter: not that of one that a loaded Program has, with a value."""
    name = names.generate(key)
    if not in_dynamic_mode():
        main, startup = default_main_program().global_block(), default_startup_program().global_block()
        while main.has_var(name) and not startup.has_var(name):
            name = names.generate(key)
    return name


def _in_program(definition: OpDef, attributes: dict[str, Any], name: str, trainable: bool) -> Any:
    if modes().tracer is not None:
        modes().tracer.refuse_parameter()
    startup = default_startup_program()
    shape, dtype = attributes["shape"], attributes["dtype"]
    parameter = default_main_program().global_block().create_parameter(name, shape, dtype, trainable)
    block = startup.global_block()
    shared = block.has_var(name)
    block.create_var(name, shape, dtype, persistable=True)  # an error if it has another shape or type
    first = next((op for op in block.ops if name in op.outputs), None) if shared else None
    if first is None or _unseeded(first.definition, first.attributes) == _unseeded(definition, attributes):
        initialise(startup, definition, attributes, name)  # else the first initializer counts, as in Paddle
    return parameter


def _unseeded(definition: OpDef, attributes: Mapping[str, Any]) -> tuple[OpDef, dict[str, Any]]:
    return definition, {**attributes, "seed": None}


def initialise(startup: Any, definition: OpDef, attributes: dict[str, Any], name: str) -> None:
    """Append to a startup Program the operator that gives a persistable variable its first value."""
    block = startup.global_block()
    variable = block.create_var(name, attributes["shape"], attributes["dtype"], persistable=True)
    block.append_op(definition, [], attributes, [variable])
