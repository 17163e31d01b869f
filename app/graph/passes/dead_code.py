"""Dead code: operators are dropped whose results nobody reads, fetches or keeps."""

from __future__ import annotations

from collections.abc import Collection

from app.graph.passes.rewrite import is_pure, with_operators
from app.graph.program import Program


def dead_code(program: Program, keep: Collection[str]) -> Program:
    """The Program without operators on which neither `keep`, nor what persists, nor an effect depends."""
    needed = set(keep)
    kept = []
    for op in reversed(program.global_block().ops):
        if not is_pure(program, op) or needed.intersection(op.outputs):
            kept.append(op)
            needed.update(name for name in op.inputs if name is not None)
    return with_operators(program, kept[::-1], keep)
