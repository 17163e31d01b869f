"""Steps that call a function with arrays: one that fills its outputs, a user's that returns them, or Python."""

from __future__ import annotations

from app.engine.compiled.kinds.native import NativeStep, NotNativeError
from app.engine.compiled.kinds.view import ConstantStep
from app.engine.compiled.language import COUNT, Array, Assign, Call, Infix, Local, Not, Operand, OtherShape, Value
from app.engine.compiled.steps import OUTSIDE, ROWS, WHOLE, Lowered, Share, Step, Use, values_taken
from app.engine.compiled.trial import only_reads_arrays
from app.engine.compiled.writer import HIGH, LOW, SHARED, Writer
from app.graph.program import Operator
from app.ops.lowering import Filling, Returning

HAS_ROWS = Infix(LOW, "<", HIGH, "bool")
"""Whether the thread has any rows: functions are never called with none."""


class FillingStep(NativeStep):
    """Calls a function that fills arrays with the outputs, and refuses some inputs."""

    calls_function = True

    def __init__(self, op: Operator, lowered: Lowered, share: Share):
        super().__init__(op, lowered, "compiled", share)
        self._form: Filling = op.definition.lowering

    def _reads_own_rows(self, name: str) -> bool:
        return True

    def write(self, out: Writer) -> None:
        function = out.called(self._form.function, self.op.type)
        values: list[Operand] = [out.share_of(name, self) for name in (*values_taken(self.op), *self.op.outputs)]
        condition: Value = Not(Call(function, (*values, *out.settings(self.op))))
        if self.share == ROWS:
            condition = Infix(HAS_ROWS, "and", condition, "bool")
        out.give_up_if(condition, reported=True)


class ReturningStep(NativeStep):
    """Calls a user's Numba function, which returns the outputs as new arrays."""

    calls_function = True
    has_known_cost = False

    def __init__(self, op: Operator, lowered: Lowered, share: Share):
        super().__init__(op, lowered, "compiled: calls a Numba function", share)
        self._form: Returning = op.definition.lowering

    def _reads_own_rows(self, name: str) -> bool:
        return True

    def write(self, out: Writer) -> None:
        if self.share != ROWS:
            self._write_call(out)
            return
        with out.when(HAS_ROWS):
            self._write_call(out)

    def _write_call(self, out: Writer) -> None:
        function = out.called(self._form.function, self._form.function.__name__)
        shares: list[Operand] = [out.share_of(name, self) for name in values_taken(self.op)]
        if not only_reads_arrays(self.op, self.lowered):
            shares = [Call("copied", (share,)) for share in shares]
        values = [Call("read_only", (share,)) for share in shares]
        results = [Array(out.names.of(("result", n), f"{out.name(n)}_result")) for n in self.op.outputs]
        out.add(Assign(results, [Call(function, (*values, *out.settings(self.op)))]))
        for result, output in zip(results, self.op.outputs, strict=True):
            out.give_up_if(OtherShape(result, out.share_of(output, self)), reported=True)
            out.copy(result.name, output, self, source_begins_at=LOW if self.share == ROWS else None)


class CallbackStep(NativeStep):
    """Calls Python from compiled code, to change values in place or to draw random numbers."""

    calls_function = True

    def __init__(self, op: Operator, lowered: Lowered):
        super().__init__(op, lowered, "Python that compiled code calls")

    @property
    def uses(self) -> list[Use]:
        return [*super().uses, Use(OUTSIDE, True, WHOLE)]

    def write(self, out: Writer) -> None:
        out.give_up_if(Call("call_python", (SHARED, Local("n", COUNT))))


def lower_drawing(op: Operator, lowered: Lowered) -> Step:
    """The step of random numbers, or of the one number that they are."""
    number = op.definition.lowering.number(op.attributes)
    if number is None:
        return CallbackStep(op, lowered)
    lowered.constants[op.outputs[0]] = number
    return ConstantStep(op, lowered)


def lower_filling(op: Operator, lowered: Lowered) -> Step:
    """The step of an operator with a function that fills its outputs."""
    lowering: Filling = op.definition.lowering
    if not lowering.fits(op.attributes, len(lowered.shapes[str(op.inputs[0])])):
        raise NotNativeError("its compiled form does not cover these attributes")
    return FillingStep(op, lowered, _share(op, lowered))


def lower_returning(op: Operator, lowered: Lowered) -> Step:
    """The step of an operator with a user's function that returns its outputs."""
    return ReturningStep(op, lowered, _share(op, lowered))


def _share(op: Operator, lowered: Lowered) -> Share:
    """How threads share out a function: by rows of the batch, or not at all. Where the size of the batch is fixed, an
    input that is no batch may have as many rows by chance."""
    share = lowered.share_of_rows(op)
    return share if op.definition.lowering.row_by_row and share == ROWS else WHOLE


def lower_callback(op: Operator, lowered: Lowered) -> Step:
    """The step of Python that changes values in place."""
    if op.outputs and op.outputs != op.inputs:
        raise NotNativeError("its results have other names than its inputs")
    return CallbackStep(op, lowered)
