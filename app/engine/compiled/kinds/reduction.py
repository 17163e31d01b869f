"""Steps that reduce values along axes: sums, means, extremes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from app.engine.compiled.kinds.loop import product_of
from app.engine.compiled.kinds.native import NativeStep
from app.engine.compiled.language import COUNT, INDEX, Assign, Call, Cast, Extent, Infix, Local, Number, Value
from app.engine.compiled.shapes import UnknownSizeError
from app.engine.compiled.steps import Lowered, Step
from app.engine.compiled.writer import Ranges, Writer, index
from app.graph.program import Operator
from app.ops.lowering import Reduction
from app.ops.size import Shape


class ReductionStep(NativeStep):
    """Each element of the output is reduced from the input's elements along some axes."""

    takes_constants = True

    def __init__(self, op: Operator, lowered: Lowered):
        super().__init__(op, lowered, "inlined: in a loop", lowered.share_of_rows(op))
        self._form: Reduction = op.definition.lowering

    @property
    def _axes(self) -> set[int]:
        """The axes of the input that are reduced."""
        return set(self._form.axes(self.op.attributes, [self.lowered.shapes[str(n)] for n in self.op.inputs]))

    def _reads_own_rows(self, name: str) -> bool:
        return 0 not in self._axes

    def write(self, out: Writer) -> None:
        """Reduce trailing axes in a scalar variable, and other axes row by row.

        Sums over trailing axes are accurate to about the last place of their type (see `_Folding`). Others are added in
        the result's type, row after row, as in NumPy.
        """
        x, result = str(self.op.inputs[0]), self.op.outputs[0]
        shape, dtype = self.lowered.shapes[x], self.lowered.dtype(result)
        axes = self._axes
        outer = _outer_axes(shape, self.lowered.shapes[result], axes)
        target = out.element(result, [Number(0, COUNT) if axis is None else index(axis) for axis in outer])
        ranges: Ranges = {axis: (None, Cast(Extent(size), INDEX)) for axis, size in enumerate(shape)}
        if outer and outer[0] is not None and not self.is_alone:
            ranges[outer[0]] = out.range_of(self)
        whole = sorted(axis for axis in outer if axis is not None)
        last = max(whole, default=-1) + 1
        inside = range(last, len(shape))
        read = out.number(x) if x in self.lowered.constants else out.element(x, [index(a) for a in range(len(shape))])
        folding = _Folding(out, self._form, dtype)
        count = Extent(product_of([shape[a] for a in sorted(axes)]))
        if inside and len(whole) == last:
            with out.loops(range(last), ranges):
                value = folding.fold(lambda: out.loops(inside, ranges), read)
                out.assign(target, Infix(value, "/", count, dtype) if self._form.mean else value)
            return
        with out.loops(whole, ranges):
            out.assign(target, folding.start)
        with out.loops(range(last), ranges):
            value = folding.fold(lambda: out.loops(inside, ranges), read) if inside else read
            out.assign(target, folding.combined(target, value))
        if self._form.mean:
            with out.loops(whole, ranges):
                out.assign(target, Infix(target, "/", Cast(count, dtype), dtype))


def _outer_axes(shape: Shape, result: Shape, axes: set[int]) -> list[int | None]:
    """Return, for each axis of the result, the corresponding axis of the input; None if that is reduced."""
    if len(result) == len(shape) - len(axes):
        places = [a for a in range(len(shape)) if a not in axes]
    else:
        places = list(range(len(shape) - len(result), len(shape)))
    if any(a not in axes and result[p] != shape[a] for p, a in enumerate(places)):
        raise UnknownSizeError("a sum to a shape may or may not have to reduce an axis")
    return [None if a in axes or shape[a] == 1 else a for a in places]


class _Folding:
    """Accumulates a reduction in variables outside the loop.

    Sums of single precision add up in double. Sums of double precision keep what each addition rounds away, and get it
    back at the end: such a loop waits for one addition after the other in any case, so that this takes no longer.
    """

    def __init__(self, out: Writer, lowering: Reduction, dtype: str):
        self._out, self._combine, self._dtype = out, lowering.combine, dtype
        self.start = Number(lowering.start(dtype), dtype)

    def combined(self, folded: Value, element: Value) -> Value:
        """A value and one more."""
        if self._combine is None:
            return Infix(folded, "+", element, self._dtype)
        name = self._out.called(self._combine, self._combine.__name__.strip("_<>"))
        return Call(name, (folded, element), self._dtype)

    def fold(self, loops: Callable[[], AbstractContextManager[None]], element: Value) -> Value:
        """Write the loops over the elements; gives the value that they became."""
        adds = self._combine is None
        is_wide = adds and self._dtype == "float32"
        folded, lost = Local("folded", "float64" if is_wide else self._dtype), Local("lost", self._dtype)
        if adds and self._dtype == "float64":
            self._out.add(Assign([folded, lost], [self.start, self.start]))
            with loops():
                self._out.add(Assign([folded, lost], [Call("add_exactly", (folded, lost, element))]))
            return Call("given_back", (folded, lost), self._dtype)
        self._out.assign(folded, Cast(self.start, "float64") if is_wide else self.start)
        with loops():
            self._out.assign(folded, self.combined(folded, element))
        return folded


def lower_reduction(op: Operator, lowered: Lowered) -> Step:
    """The step of a reduction."""
    return ReductionStep(op, lowered)
