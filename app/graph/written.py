"""Programs as text: what a Program is, written as JSON and read back. Operators are found again by their names."""

from __future__ import annotations

import json
from typing import Any

from app.errors import ProgramError
from app.graph.program import Block, Operator, Program
from app.graph.variable import Parameter, Variable
from app.ops.definition import REGISTRY


def to_json(program: Program) -> str:
    """The text of a Program whose operators are all built in: a Python function cannot be written down."""
    blocks = [
        {
            "parent": block.parent_idx,
            "variables": [_variable(v) for v in block.vars.values()],
            "operators": [_operator(op) for op in block.ops],
        }
        for block in program.blocks
    ]
    return json.dumps({"random_seed": program.random_seed, "blocks": blocks}, indent=1)


def from_json(text: str) -> Program:
    """The Program that was written as `text`."""
    program = Program()
    try:
        written = json.loads(text)
        program.random_seed = written["random_seed"]
        program.blocks = [Block(program, i, block["parent"]) for i, block in enumerate(written["blocks"])]
        for block, said in zip(program.blocks, written["blocks"], strict=True):
            for variable in said["variables"]:
                _add_variable(block, **variable)
            block.ops = [_read_operator(**op) for op in said["operators"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ProgramError(f"this is not the text of a Program: {type(error).__name__} {error}") from error
    return program


def _variable(variable: Variable) -> dict[str, Any]:
    said: dict[str, Any] = {"name": variable.name, "shape": variable.shape, "dtype": variable.dtype}
    flags = ("persistable", "stop_gradient", "is_data")
    said.update({flag: True for flag in flags if getattr(variable, flag)})
    return {**said, "parameter": True} if isinstance(variable, Parameter) else said


def _add_variable(block: Block, name: str, shape: Any, dtype: str, parameter: bool = False, **flags: bool) -> None:
    if parameter:
        block.create_parameter(name, shape, dtype, trainable=not flags.get("stop_gradient", False))
    else:
        block.create_var(name, shape, dtype, **flags)


def _operator(op: Operator) -> dict[str, Any]:
    if REGISTRY.get(op.type) is not op.definition:
        raise ProgramError(f"{op.definition.label} is a function of a program, which cannot be written to a file")
    for name, value in op.attributes.items():
        if not _is_plain(value):
            raise ProgramError(f"operator {op.type}: its {name}, {value!r}, cannot be written to a file")
    return {
        "type": op.type,
        "inputs": op.inputs,
        "outputs": op.outputs,
        "attributes": op.attributes,
        "role": op.role,
    }


def _read_operator(type: str, inputs: Any, outputs: Any, attributes: dict[str, Any], role: str) -> Operator:
    if type not in REGISTRY:
        raise ProgramError(f"there is no operator {type!r}; was the Program written by another release?")
    return Operator(REGISTRY[type], inputs, outputs, {k: _tupled(v) for k, v in attributes.items()}, role)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _tupled(value: Any) -> Any:
    """Attributes have tuples, which JSON writes as lists."""
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
