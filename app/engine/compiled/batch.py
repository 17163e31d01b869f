"""What follows from taking all unknown sizes for one, the size of the batch: which shapes are the same."""

from __future__ import annotations

from collections.abc import Mapping

from app.engine.compiled.sizes import Shape, shapes_inside, shapes_of
from app.graph.passes.bodies import rewritten
from app.graph.passes.rewrite import with_operators
from app.graph.program import Operator, Program
from app.ops.creation import assign
from app.ops.form import ToShape
from app.ops.spec import UNKNOWN


def with_one_batch_size(program: Program, given: Mapping[str, Shape] | None = None) -> Program:
    """The Program with operators that look at shapes when they run told those shapes; or gone, where they agree."""
    block, shapes = program.global_block(), shapes_of(program, given)

    def told(op: Operator) -> Operator:
        form = op.definition.form
        if op.bodies:
            return rewritten(op, lambda name, body, kept: with_one_batch_size(body, shapes_inside(op, shapes, name)))
        if not isinstance(form, ToShape):
            return op
        x, like = map(str, op.inputs)
        if shapes[x] == shapes[like]:
            return Operator(assign, [x], op.outputs, {}, op.role)
        return Operator(
            form.told, [x], op.outputs, {"shape": tuple(UNKNOWN if s.times else s.plus for s in shapes[like])}, op.role
        )

    return with_operators(program, [told(op) for op in block.ops], block.vars)
