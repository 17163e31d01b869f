"""Steps that compute nothing: views, constants, copies, and parts of values."""

from __future__ import annotations

import copy

from app.engine.compiled.kinds.loop import LoopStep
from app.engine.compiled.kinds.native import NativeStep, NotNativeError
from app.engine.compiled.language import (
    INDEX,
    Array,
    Assign,
    Cast,
    Element,
    Extent,
    Flat,
    Infix,
    Length,
    Local,
    Value,
)
from app.engine.compiled.steps import WHOLE, Lowered, Step
from app.engine.compiled.writer import Writer, index
from app.graph.program import Operator
from app.ops.lowering import Constant, Joining
from app.ops.size import AnySize
from app.ops.spec import normal_axis


class AliasStep(Step):
    """The output is another view of the input."""

    is_free = True

    def __init__(self, op: Operator, lowered: Lowered):
        super().__init__(op, lowered, "free: another view of the same numbers")


class ConstantStep(Step):
    """The output is a constant, written into the source of the steps that read it."""

    is_free = True

    def __init__(self, op: Operator, lowered: Lowered):
        super().__init__(op, lowered, "inlined: a number")

    def as_array(self, shared: bool) -> Step:
        """Return a step that fills an array with the constant, for steps that are not loops."""
        number, op = self.lowered.constants.pop(self.op.outputs[0]), copy.copy(self.op)
        op.definition = copy.copy(op.definition)
        op.definition.lowering = Constant(lambda attributes: number)
        step = LoopStep(op, self.lowered, self.lowered.share_of_rows(op) if shared else self.share)
        step.verdict = self.verdict
        return step


class CopyStep(NativeStep):
    """The output is a reshaped copy of data or of a persistable variable."""

    def __init__(self, op: Operator, lowered: Lowered):
        super().__init__(op, lowered, "compiled: a copy")

    def write(self, out: Writer) -> None:
        source, target = str(self.op.inputs[0]), self.op.outputs[0]
        flat = {name: out.flat(name) for name in (target, source)}
        out.add(Assign([Array(name) for name in flat.values()], [Flat(out.name(name)) for name in flat]))
        place, dtype = (Local("i", INDEX),), self.lowered.dtype(target)
        with out.loop("i", None, Length(out.name(target))):
            out.assign(Element(flat[target], place, dtype), Element(flat[source], place, dtype))


class PartsStep(NativeStep):
    """Copies parts of a value along an axis, into the whole or out of it."""

    def __init__(self, op: Operator, lowered: Lowered):
        self._joins = isinstance(op.definition.lowering, Joining)
        self._whole = op.outputs[0] if self._joins else str(op.inputs[0])
        self._axis = normal_axis(op.attributes["axis"], len(lowered.shapes[self._whole]))
        super().__init__(op, lowered, "compiled: a copy", lowered.share_of_rows(op) if self._axis else WHOLE)

    def _reads_own_rows(self, name: str) -> bool:
        return True

    def write(self, out: Writer) -> None:
        parts = [str(name) for name in self.op.inputs] if self._joins else self.op.outputs
        axes = range(len(self.lowered.shapes[self._whole]))
        start: AnySize = 0
        for part in parts:
            place: list[Value] = [index(axis) for axis in axes]
            inside = [*place]
            inside[self._axis] = Infix(place[self._axis], "+", Cast(Extent(start), INDEX), INDEX)
            ranges = out.ranges(self, part)
            if not self._axis:
                ranges[0] = None, Cast(Extent(self.lowered.shapes[part][0]), INDEX)
            with out.loops(axes, ranges):
                copied = [out.element(self._whole, inside), out.element(part, place)]
                out.assign(*copied if self._joins else copied[::-1])
            start = start + self.lowered.shapes[part][self._axis]


def lower_parts(op: Operator, lowered: Lowered) -> Step:
    """Return the step of an operator that joins values, or splits one."""
    if not op.inputs or not op.outputs:
        raise NotNativeError("it has no parts")
    return PartsStep(op, lowered)


def lower_alias(op: Operator, lowered: Lowered) -> Step:
    """Return the step of an operator that reshapes its input."""
    source = str(op.inputs[0])
    if lowered.is_data(lowered.root(source)) or lowered.persists(lowered.root(source)) or source in lowered.constants:
        return CopyStep(op, lowered)
    lowered.roots[op.outputs[0]] = source
    return AliasStep(op, lowered)


def lower_constant(op: Operator, lowered: Lowered) -> Step:
    """Return the step of a constant."""
    if lowered.persists(op.outputs[0]):
        return LoopStep(op, lowered, lowered.share_of_rows(op))
    lowered.constants[op.outputs[0]] = op.definition.lowering.value(op.attributes)
    return ConstantStep(op, lowered)
