"""Functions on arrays that mean the same for single numbers are run on these, inside a loop, where shapes permit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

from app.engine.compiled.lowered import Lowered
from app.engine.compiled.lowering import why_python
from app.engine.compiled.sizes import Shape, shapes_inside, shapes_of
from app.graph.passes.rewrite import rewritten, with_operators
from app.graph.program import Operator, Program
from app.ops.form import Elementwise, Returning


def with_functions_on_numbers(
    program: Program, why_not: Callable[[Operator, Lowered], str], given: Mapping[str, Shape] | None = None
) -> Program:
    """The Program with such operators made elementwise. Those whose arrays would not do stay, for the reason given."""
    known = Lowered(program, [], shapes_of(program, given))

    def inside(op: Operator, name: str, body: Program) -> Program:
        return with_functions_on_numbers(body, why_not, shapes_inside(op, known.shapes, name))

    def on_numbers(op: Operator) -> Operator:
        form = op.definition.form
        if op.bodies:
            return rewritten(op, lambda name, body, kept: inside(op, name, body))
        if not isinstance(form, Returning) or form.on_numbers is None or not known.all_alike(op):
            return op
        single = form.on_numbers
        if single.axes not in (None, len(known.shapes[op.outputs[0]])):
            return op
        definition = copy.copy(op.definition)
        definition.form = Elementwise(single.function, form.takes)
        inlined = Operator(definition, op.inputs, op.outputs, op.attributes, op.role)
        tried = inlined if single.keeps_type else op  # whose results have to be of the type that was declared
        return op if why_python(tried, known, why_not) else inlined

    block = program.global_block()
    return with_operators(program, [on_numbers(op) for op in block.ops], block.vars)
