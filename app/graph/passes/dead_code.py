"""Dead code: operators are dropped whose results nobody reads, fetches or keeps, and what control flow gives unread."""

from __future__ import annotations

from collections.abc import Collection

from app.graph.passes.bodies import rewritten
from app.graph.passes.rewrite import is_pure, is_pure_in, with_operators
from app.graph.passes.unread import without_unread_inputs, without_unread_outputs
from app.graph.program import Operator, Program


def dead_code(program: Program, keep: Collection[str]) -> Program:
    """The Program without operators on which neither `keep`, nor what persists, nor an effect depends."""
    needed = set(keep)
    kept = []
    for op in reversed(program.global_block().ops):
        if not is_pure(program, op) or needed.intersection(op.outputs):
            op = _trimmed(program, op, needed) if op.bodies else op
            kept.append(op)
            needed.update(name for name in op.inputs if name is not None)
    return with_operators(program, kept[::-1], keep)


def _trimmed(program: Program, op: Operator, needed: Collection[str]) -> Operator:
    """Control flow without what is needless in it."""
    persisting = {name for name in op.outputs if program.global_block().var(name).persistable}
    op = without_unread_outputs(op, persisting.union(needed), is_pure_in)
    return without_unread_inputs(rewritten(op, lambda name, body, kept: dead_code(body, kept)))
