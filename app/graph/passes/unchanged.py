"""Removes operators that hand on their inputs, such as that of a PyLayer, once their gradients are appended."""

from __future__ import annotations

from collections.abc import Collection

from app.graph.passes.rewrite import reads, with_operators
from app.graph.program import Operator, Program
from app.ops.creation import assign
from app.ops.lowering import Fused, Unchanged


def unchanged(program: Program, keep: Collection[str]) -> Program:
    """The Program in which the readers of an output that is an input read that input.

    An output that is kept, one whose input may be overwritten later, and one that a fused loop reads by its name become
    copies.
    """
    block = program.global_block()
    operators: list[Operator] = []
    copied = {*keep, *reads([op for op in block.ops if isinstance(op.definition.lowering, Fused)])}
    inputs: dict[str, str] = {}
    """The inputs that outputs are, by name."""
    for op in block.ops:
        op = _reading(op, inputs)
        lowering = op.definition.lowering
        if not isinstance(lowering, Unchanged):
            operators.append(op)
            continue
        for name, place in zip(op.outputs, lowering.places, strict=True):
            source = op.inputs[place]
            assert source is not None
            if name in copied or block.var(source).persistable:
                operators.append(Operator(assign, [source], [name], {}, op.role, op.place))
            else:
                inputs[name] = source
    return with_operators(program, operators, keep)


def _reading(op: Operator, inputs: dict[str, str]) -> Operator:
    if inputs.keys().isdisjoint(name for name in op.inputs if name is not None):
        return op
    names = [None if name is None else inputs.get(name, name) for name in op.inputs]
    return Operator(op.definition, names, op.outputs, op.attributes, op.role, op.place)
