"""The passes that bring a Program into the form that is lowered: this engine's own, and the general ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from app.engine.compiled.batch import with_one_batch_size
from app.engine.compiled.lowered import Lowered
from app.engine.compiled.lowering import why_python
from app.engine.compiled.on_numbers import with_functions_on_numbers
from app.engine.compiled.sizes import Shape, shapes_inside, shapes_of
from app.engine.compiled.untaken import without_untaken
from app.engine.compiled.verdict import why_not
from app.graph.passes import Pass, pipeline
from app.graph.passes.fusion import fusion
from app.graph.passes.rewrite import rewritten, with_operators
from app.graph.program import Operator, Program


def _in_python(op: Operator, program: Program, shapes: dict[str, Shape]) -> bool:
    return bool(why_python(op, Lowered(program, [], shapes), why_not))


def _batch_size(program: Program, keep: Collection[str]) -> Program:
    return with_one_batch_size(program, _in_python)


def _on_numbers(program: Program, keep: Collection[str]) -> Program:
    return with_functions_on_numbers(program, why_not)


def _untaken(program: Program, keep: Collection[str]) -> Program:
    return without_untaken(program, _in_python)


def _fuse(program: Program, keep: Collection[str], given: Mapping[str, Shape] | None = None) -> Program:
    """Fusion that leaves alone what has to run as a Python call, and joins only what surely has one shape."""
    shapes = shapes_of(program, given)
    known = Lowered(program, [], shapes)

    def inside(op: Operator) -> Operator:
        return rewritten(op, lambda name, body, kept: _fuse(body, kept, shapes_inside(op, shapes, name)))

    joined = fusion(program, keep, lambda op: not why_python(op, known, why_not), shapes.__getitem__)
    return with_operators(joined, [inside(op) for op in joined.global_block().ops], joined.global_block().vars)


PASSES = (
    Pass("batch_size", _batch_size),
    Pass("on_numbers", _on_numbers),
    Pass("untaken", _untaken),
    *pipeline(_fuse),
)
"""All of them, in order."""
