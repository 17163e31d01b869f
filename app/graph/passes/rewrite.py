"""What passes share: a Program with other operators, and who reads and writes what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from app.graph.program import Block, Operator, Program


def with_operators(program: Program, operators: Sequence[Operator], keep: Collection[str] = ()) -> Program:
    """A copy of a Program that has these operators, and only the variables that they, its data or `keep` need."""
    copied = program.clone_without_operators()
    block = copied.global_block()
    block.ops = [op.copied_into(block) for op in operators]
    used = {name for op in operators for name in (*op.inputs, *op.outputs)} | set(keep)
    block.vars = {name: v for name, v in block.vars.items() if name in used or v.is_data or v.persistable}
    return copied


def renamed(operator: Operator, names: dict[str, str]) -> Operator:
    """The operator with inputs replaced by other variables."""
    inputs = [None if name is None else names.get(name, name) for name in operator.inputs]
    return Operator(operator.definition, inputs, operator.outputs, operator.attributes, operator.role)


def reads(operators: Sequence[Operator]) -> Counter[str]:
    """How often each variable is an input."""
    return Counter(name for op in operators for name in op.inputs if name is not None)


def writes(operators: Sequence[Operator]) -> Counter[str]:
    """How often each variable is an output; more than once where an update changes it in place."""
    return Counter(name for op in operators for name in op.outputs)


def is_pure(program: Program, operator: Operator) -> bool:
    """Whether an operator can be left out, moved or shared: no effects, nothing random, no variable that persists."""
    return is_pure_in(program.global_block(), operator)


def is_pure_in(block: Block, operator: Operator) -> bool:
    """The same, of an operator of any block. Control flow is pure if everything in it is."""
    definition = operator.definition
    opaque = definition.custom and definition.form is None  # a user's Python, which may print, count or draw numbers
    if definition.effects or opaque or "seed" in operator.attributes or not operator.outputs:
        return False
    if not all(is_pure_in(body.block, inner) for body in operator.bodies.values() for inner in body.block.ops):
        return False
    return not any(block.var(name).persistable for name in operator.outputs)
