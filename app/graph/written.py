"""Programs as plain data, for a file: what a Program is, as what JSON can hold, and back.

A built-in operator is found again by its name. What stands for a custom one, and how that is found again, is told by
whoever writes and reads (see `app.custom.written`): here it is a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.errors import AppError, ProgramError
from app.graph.plain import from_plain, to_plain
from app.graph.program import BACKWARD, FORWARD, OPTIMIZE, Block, Operator, Program
from app.graph.variable import Parameter, Variable
from app.ops.definition import REGISTRY, OpDef

DAMAGES = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What reading data that nobody wrote may raise."""


def _no_number(definition: OpDef) -> int:
    raise ProgramError(f"{definition.label} is a function of a program, which cannot be written down here")


def _no_operator(number: int) -> OpDef:
    raise ProgramError(f"it has a custom operator, number {number}, which cannot be read here")


def to_data(program: Program, number_of: Callable[[OpDef], int] = _no_number) -> dict[str, Any]:
    """A Program as plain data; `number_of` gives the number that stands for a custom operator."""
    program = program.clone()  # which numbers the blocks that are in use anew
    blocks = [
        {
            "parent": block.parent_idx,
            "variables": [_variable(v) for v in block.vars.values()],
            "operators": [_operator(op, number_of) for op in block.ops],
        }
        for block in program.blocks
    ]
    return {"random_seed": program.random_seed, "random_count": program._random_count, "blocks": blocks}


def from_data(data: Any, operator_of: Callable[[int], OpDef] = _no_operator) -> Program:
    """The Program that was written as `data`; `operator_of` gives the custom operator of a number."""
    program = Program()
    try:
        program.random_seed, program._random_count = data["random_seed"], data["random_count"]
        program.blocks = [Block(program, i, block["parent"]) for i, block in enumerate(data["blocks"])]
        for block, said in zip(program.blocks, data["blocks"], strict=True):
            if block.parent_idx not in (range(block.idx) if block.idx else [-1]):
                raise ValueError(f"block {block.idx} is inside block {block.parent_idx}")
            for variable in said["variables"]:
                _add_variable(block, **variable)
        for block, said in zip(program.blocks, data["blocks"], strict=True):
            for op in said["operators"]:
                block.add_op(_read_operator(block, op, operator_of))
    except AppError as error:
        raise ProgramError(f"this is no Program: {error}") from error
    except DAMAGES as error:
        raise ProgramError(f"this is no Program: {type(error).__name__} {error}") from error
    return program


def _variable(variable: Variable) -> dict[str, Any]:
    said: dict[str, Any] = {"name": variable.name, "shape": list(variable.spec.shape), "dtype": variable.dtype}
    flags = ("persistable", "stop_gradient", "is_data")
    said.update({flag: True for flag in flags if getattr(variable, flag)})
    return {**said, "parameter": True} if isinstance(variable, Parameter) else said


def _add_variable(block: Block, name: str, shape: Any, dtype: str, parameter: bool = False, **flags: bool) -> None:
    if name in block.vars:
        raise ValueError(f"variable {name} is there twice")
    if parameter:
        block.create_parameter(name, shape, dtype, trainable=not flags.get("stop_gradient", False))
    else:
        block.create_var(name, shape, dtype, **flags)


def _operator(op: Operator, number_of: Callable[[OpDef], int]) -> dict[str, Any]:
    said: dict[str, Any] = {"type": op.type}
    if REGISTRY.get(op.type) is not op.definition:
        said["custom"] = number_of(op.definition)
    said |= {"inputs": list(op.inputs), "outputs": list(op.outputs)}
    try:
        attributes = {name: to_plain(value) for name, value in op.attributes.items()}
    except ProgramError as error:
        raise ProgramError(
            f"{op.definition.label} has an attribute that cannot be written to a file: {error}"
        ) from None
    return said | ({"attributes": attributes} if attributes else {}) | ({"role": op.role} if op.role != FORWARD else {})


def _read_operator(block: Block, said: dict[str, Any], operator_of: Callable[[int], OpDef]) -> Operator:
    name, inputs, outputs = said["type"], said["inputs"], said["outputs"]
    if "custom" in said:
        definition = operator_of(said["custom"])
    elif name in REGISTRY:
        definition = REGISTRY[name]
    else:
        raise ProgramError(f"there is no operator {name!r}; was it written by another release?")
    attributes = {key: from_plain(value, block.program.blocks) for key, value in said.get("attributes", {}).items()}
    unknown = [key for key in attributes if key not in definition.attributes]
    if unknown:
        raise ProgramError(f"{definition.label} has no attribute {unknown[0]!r}; was it written by another release?")
    if not definition.many_outputs and len(outputs) != len(definition.outputs):
        raise ProgramError(
            f"{definition.label} has {len(definition.outputs)} outputs, found {len(outputs)}; "
            "was it written by another release?"
        )
    role = said.get("role", FORWARD)
    if role not in (FORWARD, BACKWARD, OPTIMIZE):
        raise ValueError(f"there is no role {role!r}")
    for used in (*(input for input in inputs if input is not None), *outputs):
        block.var(used)
    return Operator(definition, inputs, outputs, attributes, role)
