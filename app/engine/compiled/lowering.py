"""From operators to steps: how each will run, and on which share of the rows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from app.engine.compiled.control import NotNativeError, control_step
from app.engine.compiled.lowered import ROWS, WHOLE, Lowered, Step
from app.engine.compiled.sizes import N, UnknownSizeError, is_kept_of_iterations, shapes_of
from app.graph.program import Operator, Program
from app.ops.form import (
    Alias,
    Choice,
    Constant,
    Elementwise,
    Filling,
    Fused,
    InPlace,
    Loop,
    Product,
    Reduction,
    Returning,
    Spread,
    ToShape,
)

SMALL = 16
"""A constant axis shorter than this is not worth sharing out."""


def lower(program: Program, keep: Collection[str], why_not: Callable[[Operator, Lowered], str]) -> Lowered:
    """The steps of an optimised Program. `why_not` says of a user's function why it cannot be compiled, or ''."""
    lowered = Lowered(program, [], shapes_of(program))
    for op in program.global_block().ops:
        lowered.steps.append(_lower_one(op, lowered, why_not))
        lowered.kept.update(n for n in op.outputs if is_kept_of_iterations(lowered.shapes[n]))
    _leave_to_python(lowered)
    _materialise(lowered, keep)
    _gather(lowered)
    _check_kept(lowered, keep)
    return lowered


def _lower_one(op: Operator, lowered: Lowered, why_not: Callable[[Operator, Lowered], str]) -> Step:
    if isinstance(op.definition.form, Fused):
        lowered.inner.update((n, t) for n, t in op.definition.form.dtypes.items() if n not in op.outputs)
    step = _step(op, lowered, why_not)
    if step.kind == "constant":
        lowered.constants[op.outputs[0]] = op.definition.form.value(op.attributes)
    if step.kind == "alias":
        lowered.roots[op.outputs[0]] = str(op.inputs[0])
    return step


def why_python(op: Operator, lowered: Lowered, why_not: Callable[[Operator, Lowered], str]) -> str:
    """Why an operator has to run as a Python call whatever its shapes are, or ''."""
    if op.definition.form is None:
        return "its function is plain Python" if op.definition.custom else "no compiled form"
    if isinstance(op.definition.form, ToShape):
        return "the shape that it looks at is known only in a run"
    if any(lowered.dtype(name) in ("object", "float16") for name in (*op.inputs, *op.outputs) if name):
        return "its values are of a type that is not compiled"
    return "an input is absent" if None in op.inputs else why_not(op, lowered)


def _step(op: Operator, lowered: Lowered, why_not: Callable[[Operator, Lowered], str]) -> Step:
    form = op.definition.form
    reason = why_python(op, lowered, why_not)
    if reason:
        return Step(op, "python", f"Python call: {reason}")
    if isinstance(form, (Choice, Loop)):
        try:
            return control_step(op, lowered, lambda inner: _lower_one(inner, lowered, why_not))
        except NotNativeError as error:
            return Step(op, "python", f"Python call: {error}")
    if isinstance(form, Constant) and not lowered.persists(op.outputs[0]):
        return Step(op, "constant", "inlined: a number")
    if isinstance(form, Alias):
        return _alias(op, lowered)
    if isinstance(form, InPlace):
        if op.outputs and op.outputs != op.inputs:
            return Step(op, "python", "Python call: its results have other names than its inputs")
        return Step(op, "in_place", "Python that compiled code calls")
    share = _share(lowered, op)
    if isinstance(form, (Elementwise, Fused, Reduction, Spread, Constant)):
        what = "inlined: in a loop" + (f" with {len(form.body) - 1} others" if isinstance(form, Fused) else "")
        return Step(op, "loop", what, share)
    if isinstance(form, Product):
        return _product(op, lowered, share)
    if isinstance(form, Filling):
        if not form.fits(op.attributes, len(lowered.shapes[str(op.inputs[0])])):
            return Step(op, "python", "Python call: its compiled form does not cover these attributes")
        return Step(op, "filling", "compiled", share if form.row_by_row else WHOLE)
    assert isinstance(form, Returning)
    return Step(op, "returning", "compiled: calls your Numba function", share if form.row_by_row else WHOLE)


def _alias(op: Operator, lowered: Lowered) -> Step:
    source = str(op.inputs[0])
    if lowered.is_data(lowered.root(source)) or lowered.persists(lowered.root(source)) or source in lowered.constants:
        return Step(op, "copy", "compiled: a copy", WHOLE)
    return Step(op, "alias", "free: another view of the same numbers")


def _product(op: Operator, lowered: Lowered, share: Any) -> Step:
    x, y = op.inputs[-2:]
    ranks = len(lowered.shapes[str(x)]), len(lowered.shapes[str(y)])
    if ranks != (2, 2) or lowered.dtype(str(x)) not in ("float32", "float64"):
        return Step(op, "python", "Python call: not a product of two float matrices")
    in_place = op.definition.form.step
    return Step(op, "product", "compiled: BLAS" + (", the update in the same call" if in_place else ""), share)


def _share(lowered: Lowered, op: Operator) -> Any:
    """How the threads share out a step: by rows of the batch, by its own leading axis, or not at all."""
    shape = lowered.shapes[op.outputs[0]]
    if not shape or any(lowered.shapes[name][:1] != shape[:1] for name in op.outputs):
        return WHOLE
    if shape[0] == N:
        return ROWS
    if shape[0].times or shape[0].plus < SMALL:
        return WHOLE
    return shape[0].plus


def _leave_to_python(lowered: Lowered) -> None:
    """Where something has to run between compiled parts, run there, too, what compiled code would have called."""
    if any(step.in_python for step in lowered.steps):
        for step in lowered.steps:
            if step.kind == "in_place":
                step.kind, step.verdict = (
                    "python",
                    "Python call: it would be called by compiled code, were all compiled",
                )


def _materialise(lowered: Lowered, keep: Collection[str]) -> None:
    """Turn constants that something other than a loop reads into arrays, filled by a loop."""
    needed = set(keep)
    for step in lowered.everything:
        if step.inside:
            needed.update(step.op.outputs)
        elif step.kind not in ("loop", "constant"):
            needed.update(n for n in step.op.inputs if n)
    outermost = set(map(id, lowered.steps))
    for step in lowered.everything:
        if step.kind == "constant" and step.op.outputs[0] in needed:
            lowered.constants.pop(step.op.outputs[0], None)
            step.kind = "loop"
            step.share = _share(lowered, step.op) if id(step) in outermost else WHOLE


def _gather(lowered: Lowered) -> None:
    """Note the data that must lie side by side; elementwise loops pick the rows of the others as they go."""
    for outer in lowered.steps:
        for step in outer.everything:
            if outer.inside or not isinstance(step.op.definition.form, (Elementwise, Fused, Constant)):
                lowered.gathered.update(
                    n for n in step.op.inputs if n and lowered.is_data(n) and lowered.shapes[n][:1] == (N,)
                )


def _check_kept(lowered: Lowered, keep: Collection[str]) -> None:
    """Refuse what would need to know how many iterations a loop has; only a row at a time is read of what it keeps."""
    fetched = lowered.kept.intersection(keep)
    if fetched:
        raise UnknownSizeError(f"{fetched.pop()} has a row for each iteration of a loop")
    for step in lowered.everything:
        others = step.op.inputs[1:]
        one_row = step.kind == "filling" and not any(len(lowered.shapes[str(n)]) for n in others)
        if step.inside or step.in_python or (one_row and lowered.kept.isdisjoint(filter(None, others))):
            continue
        for name in lowered.kept.intersection(step.reads):
            raise UnknownSizeError(
                f"{step.op.definition.label} reads {name}, a row for each iteration of a loop, at once"
            )
