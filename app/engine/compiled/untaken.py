"""Inputs that only lend an elementwise operator their shape are left out where others have it: they need no keeping."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from app.engine.compiled.sizes import Guess, InPython, Shape, always, guess
from app.graph.passes.rewrite import rewritten, with_operators
from app.graph.program import Operator, Program
from app.ops.form import Elementwise


def without_untaken(program: Program, in_python: InPython = always, known: Guess | None = None) -> Program:
    """The Program with such inputs gone: a gradient then no longer keeps alive what its function does not read."""
    known = known or guess(program)
    block, open_ = program.global_block(), known.open(in_python)

    def kind(name: str | None) -> tuple[Shape, str] | str | None:
        if name is None or name in open_:  # nothing else is sure to have its shape
            return name
        return known.shapes[name], block.var(name).dtype

    def reduced(op: Operator) -> Operator:
        form = op.definition.form
        if op.bodies:
            return rewritten(op, lambda name, body, kept: without_untaken(body, always, known.inside(op, name, open_)))
        if not isinstance(form, Elementwise) or form.takes is None:
            return op
        alike = {kind(op.inputs[place]): place for place in form.takes}
        stands = [i if i in form.takes else alike.get(kind(name), i) for i, name in enumerate(op.inputs)]
        kept = sorted(set(stands))
        return op if len(kept) == len(stands) else _of_fewer(op, form, kept, [kept.index(i) for i in stands])

    return with_operators(program, [reduced(op) for op in block.ops], block.vars)


def _of_fewer(op: Operator, form: Elementwise, kept: Sequence[int], stands: Sequence[int]) -> Operator:
    """The operator of the inputs that are kept: `stands` says, for each that it had, which of them will do."""
    definition = copy.copy(op.definition)
    definition.inputs = tuple(op.definition.inputs[i] for i in kept)
    definition.kernel = _given(op.definition.kernel, stands)
    definition.infer = _given(op.definition.infer, stands)
    definition.form = replace(form, takes=tuple(stands[i] for i in form.takes or ()))
    return Operator(definition, [op.inputs[i] for i in kept], op.outputs, op.attributes, op.role)


def _given(function: Callable[..., Any], stands: Sequence[int]) -> Callable[..., Any]:
    return lambda *values, **settings: function(*(values[i] for i in stands), **settings)
