"""Functions that passes share: rebuilding Programs, reads and writes of variables, and passes inside control flow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from app.graph.program import Block, Body, Operator, Program

Rewrite = Callable[[Program, Collection[str]], Program]
"""A function from a Program, and the names of variables to keep, to a Program."""


def with_operators(program: Program, operators: Sequence[Operator], keep: Collection[str] = ()) -> Program:
    """A copy of a Program with these operators, and only the variables that they, its data or `keep` need."""
    copied = program.clone_without_operators()
    block = copied.global_block()
    block.ops = [op.copied_into(block) for op in operators]
    used = {name for op in operators for name in (*op.inputs, *op.outputs)} | set(keep)
    block.vars = {name: v for name, v in block.vars.items() if name in used or v.is_data or v.persistable}
    return copied


def reads(operators: Sequence[Operator]) -> Counter[str]:
    """The number of times that each variable is an input."""
    return Counter(name for op in operators for name in op.inputs if name is not None)


def writes(operators: Sequence[Operator]) -> Counter[str]:
    """The number of times that each variable is an output; above 1 if an update changes it in place."""
    return Counter(name for op in operators for name in op.outputs)


def is_pure(block: Block, operator: Operator) -> bool:
    """Whether an operator can be removed or moved: no side effects, random numbers or persistable outputs.

    Control flow is pure if all operators in it are.
    """
    definition = operator.definition
    opaque = definition.custom and definition.lowering is None  # a user's Python function may have side effects
    if definition.effects or opaque or definition.random or not operator.outputs:
        return False
    if not all(is_pure(body.block, inner) for body in operator.bodies.values() for inner in body.block.ops):
        return False
    return not any(block.var(name).persistable for name in operator.outputs)


# Inside control flow


def as_program(body: Body) -> Program:
    """A body as a Program, whose data variables are the inputs of the body."""
    program = Program()
    program.blocks = []
    block = body.block.copied_into(program)
    for name in body.inputs:
        block.vars[name].is_data = True
    return program


def _as_body(program: Program, like: Body) -> Body:
    """The inverse of `as_program`, with the inputs and outputs of `like`."""
    for name in like.inputs:
        program.global_block().vars[name].is_data = False
    return Body(program.global_block(), like.inputs, like.outputs)


def rewritten(op: Operator, rewrite: Callable[[str, Program, Collection[str]], Program]) -> Operator:
    """An operator with rewritten bodies; `rewrite` takes the name of the attribute, the Program, and names to keep."""
    bodies = op.bodies
    if not bodies:
        return op
    changed = Operator(op.definition, op.inputs, op.outputs, op.attributes, op.role)
    for name, body in bodies.items():
        outputs = set(body.outputs)
        changed.attributes[name] = _as_body(rewrite(name, as_program(body), outputs), body)
    return changed


def inside_too(rewrite: Rewrite) -> Rewrite:
    """A pass that applies `rewrite` to a Program and to all bodies in it."""

    def everywhere(program: Program, keep: Collection[str]) -> Program:
        program = rewrite(program, keep)
        operators = program.global_block().ops
        if not any(op.bodies for op in operators):
            return program
        inside = [rewritten(op, lambda name, body, outputs: everywhere(body, outputs)) for op in operators]
        return with_operators(program, inside, program.global_block().vars)

    return everywhere
