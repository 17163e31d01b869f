"""Exact conversion of Programs to data for JSON, and back.

A built-in operator is stored by its name. A custom operator is stored as a number, whose meaning depends on the file
format (see `opsmith.custom.references`).

In attributes, tuples are stored as lists, and numbers, strings, booleans and None as they are. Any other value is an
object with one key, its type: {"float": "inf"}, {"array": {…}}, {"body": {…}}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from app.errors import AppError, ProgramError
from app.graph.program import BACKWARD, FORWARD, OPTIMIZE, Block, Body, Operator, Program
from app.graph.variable import Parameter, Variable
from app.ops.definition import REGISTRY, OpDef
from app.ops.dtype import NAMES
from app.ops.spec import Spec
from app.ops.values import Attributes, Setting

DAMAGE_ERRORS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""The errors that reading damaged data may raise."""

Json = Any
"""Data for `json`: None, bool, int, float, str, lists of these, and dictionaries of these by strings."""


# Programs


def _no_number(definition: OpDef) -> int:
    raise ProgramError(f"{definition.label} is a custom operator, which cannot be saved here")


def _no_operator(number: int) -> OpDef:
    raise ProgramError(f"it has a custom operator (number {number}), which cannot be loaded here")


def program_to_data(program: Program, number_of: Callable[[OpDef], int] = _no_number) -> dict[str, Json]:
    """A Program as plain data; `number_of` returns the number of a custom operator."""
    program = program.clone()  # numbers the blocks without gaps
    blocks = [
        {
            "parent": block.parent_idx,
            "variables": [_variable_to_data(v) for v in block.vars.values()],
            "operators": [_operator_to_data(op, number_of) for op in block.ops],
        }
        for block in program.blocks
    ]
    return {"random_seed": program.random_seed, "random_count": program.random_count, "blocks": blocks}


def program_from_data(data: Json, operator_of: Callable[[int], OpDef] = _no_operator) -> Program:
    """The Program stored as `data`; `operator_of` returns the custom operator of a number."""
    program = Program()
    try:
        program.random_seed, program.random_count = data["random_seed"], data["random_count"]
        program.blocks = [Block(program, i, block["parent"]) for i, block in enumerate(data["blocks"])]
        for block, stored in zip(program.blocks, data["blocks"], strict=True):
            if block.parent_idx not in (range(block.idx) if block.idx else [-1]):
                raise ValueError(f"block {block.idx} is inside block {block.parent_idx}")
            for variable in stored["variables"]:
                _add_variable(block, **variable)
        for block, stored in zip(program.blocks, data["blocks"], strict=True):
            block.ops = [_operator_from_data(block, op, operator_of) for op in stored["operators"]]
            _check_writers(block)
    except AppError as error:
        raise ProgramError(f"this is not a Program: {error}") from error
    except DAMAGE_ERRORS as error:
        raise ProgramError(f"this is not a Program: {type(error).__name__} {error}") from error
    return program


def _check_writers(block: Block) -> None:
    """Raise an error if operators of a block write to a variable twice, as no Program does."""
    written: set[str] = set()
    for op in block.ops:
        for name in op.outputs:
            if name in written and name in block.vars and not block.vars[name].persistable:
                raise ValueError(f"two operators write to {name}")
            written.add(name)


def _variable_to_data(variable: Variable) -> dict[str, Json]:
    data: dict[str, Json] = {"name": variable.name, "shape": list(variable.spec.shape), "dtype": variable.dtype}
    flags = ("persistable", "stop_gradient", "is_data")
    data.update({flag: True for flag in flags if getattr(variable, flag)})
    return {**data, "parameter": True} if isinstance(variable, Parameter) else data


def _add_variable(
    block: Block, name: str, shape: Sequence[int], dtype: str, parameter: bool = False, **flags: bool
) -> None:
    if name in block.vars:
        raise ValueError(f"variable {name} occurs twice")
    if parameter:
        block.create_parameter(name, shape, dtype, trainable=not flags.get("stop_gradient", False))
    else:
        block.create_var(name, shape, dtype, **flags)


def _operator_to_data(op: Operator, number_of: Callable[[OpDef], int]) -> dict[str, Json]:
    data: dict[str, Json] = {"type": op.type}
    if REGISTRY.get(op.type) is not op.definition:
        data["custom"] = number_of(op.definition)
    data |= {"inputs": list(op.inputs), "outputs": list(op.outputs)}
    try:
        attributes = {name: value_to_data(value) for name, value in op.attributes.items()}
    except ProgramError as error:
        raise ProgramError(
            f"{op.definition.label} has an attribute that cannot be written to a file: {error}"
        ) from None
    return data | ({"attributes": attributes} if attributes else {}) | ({"role": op.role} if op.role != FORWARD else {})


def _operator_from_data(block: Block, data: Json, operator_of: Callable[[int], OpDef]) -> Operator:
    name, inputs, outputs = data["type"], data["inputs"], data["outputs"]
    stored = data.get("attributes", {}).items()
    attributes: Attributes = {key: value_from_data(value, block.program.blocks) for key, value in stored}
    if "custom" in data:
        definition = operator_of(data["custom"])
    else:
        if name not in REGISTRY:
            raise ProgramError(f"there is no operator {name!r}; was it written by another release?")
        definition = REGISTRY[name]
    unknown = [key for key in attributes if key not in definition.attributes]
    if unknown:
        raise ProgramError(f"{definition.label} has no attribute {unknown[0]!r}; was it written by another release?")
    if not definition.many_outputs and len(outputs) != len(definition.outputs):
        raise ProgramError(
            f"{definition.label} has {len(definition.outputs)} outputs, found {len(outputs)}; "
            "was it written by another release?"
        )
    if definition.variadic is None and len(inputs) > len(definition.inputs):
        raise ProgramError(f"{definition.label} has {len(definition.inputs)} inputs, found {len(inputs)}")
    role = data.get("role", FORWARD)
    if role not in (FORWARD, BACKWARD, OPTIMIZE):
        raise ValueError(f"there is no role {role!r}")
    for used in (*(input for input in inputs if input is not None), *outputs):
        block.var(used)
    return Operator(definition, inputs, outputs, attributes, role)


# Attributes


def value_to_data(value: Setting) -> Json:
    """An attribute as plain data; a ProgramError if it cannot be stored."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is tuple:
        return [value_to_data(item) for item in value]
    for name, kind in _KINDS.items():
        if type(value) is kind.type:
            return {name: kind.write(value)}
    raise ProgramError(f"{value!r} ({type(value).__name__})")


def value_from_data(data: Json, blocks: Sequence[Block] = ()) -> Setting:
    """The attribute stored as `data`; bodies refer to `blocks`."""
    if isinstance(data, list):
        return tuple(value_from_data(item, blocks) for item in data)
    if not isinstance(data, dict):
        return data
    ((name, content),) = data.items()
    return _KINDS[name].read(content, blocks)


class _Kind(NamedTuple):
    """A type that JSON does not have, with functions that write and read its values."""

    type: type
    write: Callable[[Any], Json]
    read: Callable[[Json, Sequence[Block]], Setting]


def _read_float(text: str, blocks: Sequence[Block]) -> float:
    number = float(text)
    if math.isfinite(number):
        raise ValueError(f"{text} is finite")
    return number


def _write_array(array: np.ndarray) -> dict[str, Json]:
    if array.dtype.name not in NAMES:
        raise ProgramError(f"an array of {array.dtype}")
    values = value_to_data(tuple(array.ravel().tolist()))
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": values}


def _read_array(data: Json, blocks: Sequence[Block]) -> np.ndarray:
    if data["dtype"] not in NAMES:
        raise ValueError(f"an array of {data['dtype']}")
    array: np.ndarray = np.array(value_from_data(data["values"]), data["dtype"]).reshape(data["shape"])
    return array


def _write_body(body: Body) -> dict[str, Json]:
    return {"block": body.block.idx, "inputs": list(body.inputs), "outputs": list(body.outputs)}


def _read_body(data: Json, blocks: Sequence[Block]) -> Body:
    if not 0 < data["block"] < len(blocks):
        raise ValueError(f"there is no sub-block {data['block']}")
    body = Body(blocks[data["block"]], data["inputs"], data["outputs"])
    for name in (*body.inputs, *body.outputs):
        if name is not None:
            body.block.var(name)
    return body


_KINDS = {
    "float": _Kind(float, repr, _read_float),
    "array": _Kind(np.ndarray, _write_array, _read_array),
    "spec": _Kind(Spec, lambda spec: value_to_data(tuple(spec)), lambda data, blocks: Spec(*value_from_data(data))),
    "body": _Kind(Body, _write_body, _read_body),
}
