"""Making parameters: Tensors with their first values, or Variables that a startup Program will initialise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.graph import names
from app.graph.defaults import default_main_program, default_startup_program, in_dynamic_mode
from app.nn.initializer import Constant, Initializer, XavierUniform
from app.ops.definition import OpDef, apply
from app.ops.dtype import canonical, get_default_dtype
from app.tensor import Parameter


class ParamAttr:
    """What can be said of a parameter where a layer makes it."""

    def __init__(self, name: str | None = None, initializer: Initializer | None = None, trainable: bool = True):
        self.name = name
        self.initializer = initializer
        self.trainable = trainable


def as_param_attr(attr: Any) -> ParamAttr:
    """A ParamAttr from what a layer accepts: None, a name, an initializer or a ParamAttr."""
    if isinstance(attr, ParamAttr):
        return attr
    if isinstance(attr, str):
        return ParamAttr(name=attr)
    return ParamAttr(initializer=attr)


def create_parameter(
    shape: Sequence[int],
    dtype: Any = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
    name: str | None = None,
) -> Any:
    """A new parameter: Xavier's uniform numbers, or zeros for a bias, unless `attr` says otherwise."""
    attr = as_param_attr(attr)
    dtype = canonical(dtype or get_default_dtype())
    initializer = attr.initializer or default_initializer or (Constant(0.0) if is_bias else XavierUniform())
    shape = tuple(int(size) for size in shape)
    definition, settings = initializer(shape)
    attributes = {**definition.attributes, **settings, "shape": shape, "dtype": dtype}
    name = attr.name or name or names.generate("param")
    if in_dynamic_mode():
        return Parameter(np.asarray(apply(definition, [], attributes)), name, attr.trainable)
    return _in_program(definition, attributes, name, attr.trainable)


def _in_program(definition: OpDef, attributes: dict[str, Any], name: str, trainable: bool) -> Any:
    startup = default_startup_program()
    shape, dtype = attributes["shape"], attributes["dtype"]
    parameter = default_main_program().global_block().create_parameter(name, shape, dtype, trainable)
    initialise(startup, definition, attributes, name)
    return parameter


def initialise(startup: Any, definition: OpDef, attributes: dict[str, Any], name: str) -> None:
    """Append to a startup Program the operator that gives a persistable variable its first value."""
    block = startup.global_block()
    if "seed" in attributes:
        attributes["seed"] = startup.next_seed()
    variable = block.create_var(name, attributes["shape"], attributes["dtype"], persistable=True)
    block.append_op(definition, [], attributes, [variable])
