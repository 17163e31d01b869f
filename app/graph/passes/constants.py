"""Constant folding: operators on constants are computed at compile time."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from app.graph.passes.rewrite import is_pure, with_operators, writes
from app.graph.program import Block, Operator, Program
from app.ops.creation import fill_constant
from app.ops.definition import as_immutable
from app.ops.lowering import Constant
from app.ops.spec import UNKNOWN

LARGEST = 64
"""The maximum number of elements of a folded result."""


def constants(program: Program, keep: Collection[str]) -> Program:
    """The Program with operators on constants replaced by their results, if all elements of a result are equal."""
    block = program.global_block()
    write_counts = writes(block.ops)
    known: dict[str, np.ndarray] = {}
    operators = []
    for op in block.ops:
        value = _value(block, op, known) if op.outputs and write_counts[op.outputs[0]] == 1 else None
        if value is None:
            operators.append(op)
            continue
        known[op.outputs[0]] = value
        attributes = {"shape": tuple(value.shape), "value": as_immutable(value.flat[0]), "dtype": value.dtype.name}
        operators.append(Operator(fill_constant, [], op.outputs, attributes, op.role))
    return with_operators(program, operators, keep)


def _value(block: Block, op: Operator, known: dict[str, np.ndarray]) -> np.ndarray | None:
    """The result of an operator on known values, if all its elements are equal."""
    spec = block.var(op.outputs[0]).spec
    if len(op.outputs) != 1 or not is_pure(block, op) or UNKNOWN in spec.shape:
        return None
    if isinstance(op.definition.lowering, Constant):
        value = np.full(spec.shape, op.definition.lowering.value(op.attributes), spec.dtype)
        return value if value.size else None
    if not op.inputs or not all(name in known for name in op.inputs) or op.definition.lowering is None or op.bodies:
        return None
    result = np.asarray(op.definition.run([known[str(name)] for name in op.inputs], op.attributes))
    uniform = 0 < result.size <= LARGEST and bool(np.all(result == result.flat[0]))
    return result if uniform and np.isfinite(result).all() else None
