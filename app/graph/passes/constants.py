"""Constant folding: what depends on constants alone is computed once, while compiling."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from app.graph.passes.rewrite import is_pure, with_operators, writes
from app.graph.program import Operator, Program
from app.ops.creation import fill_constant
from app.ops.definition import plain
from app.ops.form import Constant
from app.ops.spec import UNKNOWN

LARGEST = 64
"""Constants with more elements than this are left to the operators that make them."""


def constants(program: Program, keep: Collection[str]) -> Program:
    """The Program with operators on known numbers replaced by their result, where that is one number."""
    block = program.global_block()
    written = writes(block.ops)
    known: dict[str, Any] = {}
    operators = []
    for op in block.ops:
        value = _value(program, op, known) if op.outputs and written[op.outputs[0]] == 1 else None
        if value is None:
            operators.append(op)
            continue
        known[op.outputs[0]] = value
        attributes = {"shape": tuple(value.shape), "value": plain(value.flat[0]), "dtype": value.dtype.name}
        operators.append(Operator(fill_constant, [], op.outputs, attributes, op.role))
    return with_operators(program, operators, keep)


def _value(program: Program, op: Operator, known: dict[str, Any]) -> Any:
    """The result of an operator on known values if it is the same number everywhere, else None."""
    spec = program.global_block().var(op.outputs[0]).spec
    if len(op.outputs) != 1 or not is_pure(program, op) or UNKNOWN in spec.shape:
        return None
    if isinstance(op.definition.form, Constant):
        return np.full(spec.shape, op.definition.form.value(op.attributes), spec.dtype)
    if not op.inputs or not all(name in known for name in op.inputs) or op.definition.form is None or op.bodies:
        return None
    result = np.asarray(op.definition.kernel(*[known[str(name)] for name in op.inputs], **op.attributes))
    uniform = 0 < result.size <= LARGEST and bool(np.all(result == result.flat[0]))
    return result if uniform and np.isfinite(result).all() else None
