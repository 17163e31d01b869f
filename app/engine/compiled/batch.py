"""What follows from taking all unknown sizes for one, the size of the batch: which shapes are the same."""

from __future__ import annotations

from app.engine.compiled.sizes import Guess, InPython, always, guess
from app.graph.passes.rewrite import rewritten, with_operators
from app.graph.program import Operator, Program
from app.ops.creation import assign
from app.ops.form import ToShape
from app.ops.spec import UNKNOWN


def with_one_batch_size(program: Program, in_python: InPython = always, known: Guess | None = None) -> Program:
    """The Program with operators that look at shapes when they run told those shapes; or gone, where they agree.

    Those that look at a shape which only a run tells stay as they are.
    """
    known = known or guess(program)
    shapes, open_ = known.shapes, known.open(in_python)

    def told(op: Operator) -> Operator:
        form = op.definition.form
        if op.bodies:
            return rewritten(
                op, lambda name, body, kept: with_one_batch_size(body, always, known.inside(op, name, open_))
            )
        if not isinstance(form, ToShape) or not open_.isdisjoint(filter(None, op.inputs)):
            return op
        x, like = map(str, op.inputs)
        if shapes[x] == shapes[like]:
            return Operator(assign, [x], op.outputs, {}, op.role)
        return Operator(
            form.told, [x], op.outputs, {"shape": tuple(UNKNOWN if s.times else s.plus for s in shapes[like])}, op.role
        )

    return with_operators(program, [told(op) for op in program.global_block().ops], program.global_block().vars)
