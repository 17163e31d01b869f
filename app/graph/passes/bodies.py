"""Passes inside control flow: a body is a Program whose data is what it takes, and which keeps what it gives."""

from __future__ import annotations

from collections.abc import Callable, Collection

from app.graph.body import Body
from app.graph.passes.rewrite import with_operators
from app.graph.program import Operator, Program

Rewriting = Callable[[Program, Collection[str]], Program]


def as_program(body: Body) -> Program:
    """A body as a Program."""
    program = Program()
    program.blocks = []
    block = body.block.copied_into(program)
    for name in body.inputs:
        block.vars[name].is_data = True
    return program


def from_program(program: Program, like: Body) -> Body:
    """A body made of a Program that was one, with the inputs and outputs that it had."""
    for name in like.inputs:
        program.global_block().vars[name].is_data = False
    return Body(program.global_block(), like.inputs, like.outputs)


def rewritten(op: Operator, rewrite: Callable[[str, Program, Collection[str]], Program]) -> Operator:
    """An operator with each of its bodies rewritten; `rewrite` is told the attribute, the Program and what to keep."""
    bodies = op.bodies
    if not bodies:
        return op
    changed = Operator(op.definition, op.inputs, op.outputs, op.attributes, op.role)
    for name, body in bodies.items():
        kept = {output for output in body.outputs if output is not None}
        changed.attributes[name] = from_program(rewrite(name, as_program(body), kept), body)
    return changed


def inside_too(rewrite: Rewriting) -> Rewriting:
    """A pass that works on a Program, and in all bodies in it."""

    def everywhere(program: Program, keep: Collection[str]) -> Program:
        program = rewrite(program, keep)
        operators = program.global_block().ops
        if not any(op.bodies for op in operators):
            return program
        inside = [rewritten(op, lambda name, body, kept: everywhere(body, kept)) for op in operators]
        return with_operators(program, inside, program.global_block().vars)

    return everywhere
