"""Steps that compute nothing: views, constants and copies."""

from __future__ import annotations

from app.engine.compiled.kinds.loop import LoopStep
from app.engine.compiled.kinds.native import LowerOne, NativeStep
from app.engine.compiled.language import INDEX, Array, Assign, Element, Flat, Length, Local
from app.engine.compiled.steps import Lowered, Step
from app.engine.compiled.writer import Writer
from app.graph.program import Operator


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
        self.lowered.constants.pop(self.op.outputs[0], None)
        step = LoopStep(self.op, self.lowered, self.lowered.share_of_rows(self.op) if shared else self.share)
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


def lower_alias(op: Operator, lowered: Lowered, lower_one: LowerOne) -> Step:
    """Return the step of an operator that reshapes its input."""
    source = str(op.inputs[0])
    if lowered.is_data(lowered.root(source)) or lowered.persists(lowered.root(source)) or source in lowered.constants:
        return CopyStep(op, lowered)
    lowered.roots[op.outputs[0]] = source
    return AliasStep(op, lowered)


def lower_constant(op: Operator, lowered: Lowered, lower_one: LowerOne) -> Step:
    """Return the step of a constant."""
    if lowered.persists(op.outputs[0]):
        return LoopStep(op, lowered, lowered.share_of_rows(op))
    lowered.constants[op.outputs[0]] = op.definition.lowering.value(op.attributes)
    return ConstantStep(op, lowered)
