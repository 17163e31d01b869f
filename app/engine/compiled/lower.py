"""Turns the operators of an optimised Program into steps, by the lowering of each operator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from app.engine.compiled.by_lanes import hold_by_lanes
from app.engine.compiled.kinds.byte_product import lower_byte_product, lower_transposed_bytes
from app.engine.compiled.kinds.call import CallbackStep, lower_callback, lower_drawing, lower_filling, lower_returning
from app.engine.compiled.kinds.control import lower_choice, lower_loop_gradient
from app.engine.compiled.kinds.control import lower_loop as lower_while
from app.engine.compiled.kinds.convolution import lower_convolution, lower_pooling, lower_sums_of_tiles
from app.engine.compiled.kinds.loop import lower_loop
from app.engine.compiled.kinds.native import NotNativeError
from app.engine.compiled.kinds.product import lower_product
from app.engine.compiled.kinds.python import PythonStep
from app.engine.compiled.kinds.reduction import lower_reduction
from app.engine.compiled.kinds.view import ConstantStep, lower_alias, lower_constant, lower_parts
from app.engine.compiled.shapes import shapes_of
from app.engine.compiled.steps import Lowered, Step
from app.graph.program import Operator, Program
from app.ops.lowering import (
    Alias,
    ByteProduct,
    Choice,
    Constant,
    Convolution,
    Drawing,
    Elementwise,
    Filling,
    Fused,
    InPlace,
    Joining,
    Loop,
    LoopGradient,
    Pooling,
    Product,
    Reduction,
    Returning,
    Splitting,
    Spread,
    SumsOfTiles,
    TransposedBytes,
)

KINDS: Mapping[type, Callable[[Operator, Lowered], Step]] = {
    Elementwise: lower_loop,
    Fused: lower_loop,
    Spread: lower_loop,
    Reduction: lower_reduction,
    Product: lower_product,
    ByteProduct: lower_byte_product,
    TransposedBytes: lower_transposed_bytes,
    Convolution: lower_convolution,
    Pooling: lower_pooling,
    SumsOfTiles: lower_sums_of_tiles,
    Filling: lower_filling,
    Returning: lower_returning,
    InPlace: lower_callback,
    Drawing: lower_drawing,
    Alias: lower_alias,
    Joining: lower_parts,
    Splitting: lower_parts,
    Constant: lower_constant,
    Choice: lower_choice,
    Loop: lower_while,
    LoopGradient: lower_loop_gradient,
}
"""The functions that lower an operator to a step, by its form. They raise `NotNativeError` if it must run in Python."""

WhyNot = Callable[[Operator, Lowered], str]
"""Returns why a user's function cannot be compiled, or ''."""


def lower(program: Program, keep: Collection[str], why_not: WhyNot) -> Lowered:
    """Lower an optimised Program to steps."""
    lowered = Lowered(program, shapes_of(program))

    def lower_one(op: Operator) -> Step:
        lowering = op.definition.lowering
        if isinstance(lowering, Fused):
            lowered.inner.update((name, dtype) for name, dtype in lowering.dtypes.items() if name not in op.outputs)
        reason = why_python(op, lowered, why_not)
        if reason:
            return PythonStep(op, lowered, reason)
        try:
            return KINDS[type(lowering)](op, lowered)
        except NotNativeError as error:
            return PythonStep(op, lowered, str(error))

    lowered.lower_one = lower_one
    for op in program.global_block().ops:
        lowered.steps.append(lower_one(op))
    _leave_callbacks_to_python(lowered)
    _make_arrays_of_constants(lowered, keep)
    _gather_data(lowered)
    hold_by_lanes(lowered, keep)
    return lowered


def why_python(op: Operator, lowered: Lowered, why_not: WhyNot) -> str:
    """Return why an operator must run as a Python call for any shapes, or ''."""
    if op.definition.lowering is None:
        return "its function is plain Python" if op.definition.custom else "no compiled form"
    if type(op.definition.lowering) not in KINDS:
        return "its form is not compiled"
    if any(lowered.dtype(name) == "float16" for name in (*op.inputs, *op.outputs) if name):
        return "its values are of a type that is not compiled"
    return "an input is absent" if None in op.inputs else why_not(op, lowered)


def _leave_callbacks_to_python(lowered: Lowered) -> None:
    """If any step must run between compiled parts, run callbacks of compiled code there too."""
    if any(step.in_python for step in lowered.steps):
        reason = "compiled code could call it only if all operators were compiled"
        lowered.steps = [
            PythonStep(step.op, lowered, reason) if isinstance(step, CallbackStep) else step for step in lowered.steps
        ]


def _make_arrays_of_constants(lowered: Lowered, keep: Collection[str]) -> None:
    """Turn constants that are read outside elementwise loops into arrays, filled by a loop."""
    needed = set(keep)
    for step in lowered.everything:
        if step.bodies:
            needed.update(step.op.outputs)
        elif not (step.takes_constants or isinstance(step, ConstantStep)):
            needed.update(name for name in step.op.inputs if name)

    def in_arrays(steps: list[Step], are_outermost: bool) -> None:
        for place, step in enumerate(steps):
            if isinstance(step, ConstantStep) and step.op.outputs[0] in needed:
                steps[place] = step.as_array(are_outermost)
            for inside in step.bodies.values():
                in_arrays(inside, False)

    in_arrays(lowered.steps, True)


def _gather_data(lowered: Lowered) -> None:
    """Record the data that must be contiguous; elementwise loops read the rows of other data directly."""
    for outer in lowered.steps:
        for step in outer.everything:
            if outer.bodies or not step.picks_rows:
                lowered.gathered.update(
                    name
                    for name in step.op.inputs
                    if name and lowered.is_data(name) and lowered.has_batch_in_front(name)
                )
