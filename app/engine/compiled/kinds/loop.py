"""Steps that are one loop: elementwise operators, fused ones, and reduced values broadcast back."""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.compiled.kinds.native import NativeStep
from app.engine.compiled.language import COUNT, INDEX, Assign, Call, Cast, Element, Extent, Infix, Local, Number, Value
from app.engine.compiled.shapes import UnknownSizeError
from app.engine.compiled.steps import Lowered, Share, Step, values_taken
from app.engine.compiled.writer import Writer, index
from app.graph.program import Operator
from app.ops.dtype import INTEGERS
from app.ops.lowering import Constant, Fused, Spread
from app.ops.size import AnySize, Shape


class LoopStep(NativeStep):
    """Computes each element of the outputs from the corresponding elements of the inputs, in one loop."""

    def __init__(self, op: Operator, lowered: Lowered, share: Share):
        others = len(op.definition.lowering.body) - 1 if isinstance(op.definition.lowering, Fused) else 0
        with_others = f" with {others} other{'s' * (others > 1)}" if others else ""
        super().__init__(op, lowered, f"inlined: in a loop{with_others}", share)
        self.picks_rows = not isinstance(op.definition.lowering, Spread)

    takes_constants = True

    def _reads_own_rows(self, name: str) -> bool:
        same_rank = len(self.lowered.shapes[name]) == len(self.lowered.shapes[self.op.outputs[0]])
        return same_rank and (not isinstance(self.op.definition.lowering, Spread) or self.op.inputs[0] == name)

    def may_overwrite(self, output: str, dying: str) -> bool:
        lowered = self.lowered
        same = {n for n in self.op.inputs if n and lowered.root(n) == dying}
        if isinstance(self.op.definition.lowering, (Spread, Constant)) or same != {dying}:
            return False
        if lowered.shapes[dying] != lowered.shapes[output]:
            return False
        written = next(i for i, op in enumerate(self.members) if output in op.outputs)
        return not any(dying in op.inputs for op in self.members[written + 1 :])

    def write(self, out: Writer) -> None:
        shape = self.lowered.shapes[self.op.outputs[0]]
        ranges = out.ranges(self, self.op.outputs[0])
        scattered = dict.fromkeys(n for n in self.op.inputs if n and out.is_scattered(n))
        if not shape:
            self._write_elements(out, shape)
            return
        with out.loop(index(0).name, *ranges[0]):
            if scattered:
                row = Element("rows", (index(0),), COUNT)
                out.assign(Local("row", INDEX), Cast(row, INDEX))
                for name in scattered:
                    out.do("fetch_ahead", Local(out.array_name(name), ""), Local("rows", ""), index(0))
            with out.loops(range(1, len(shape)), ranges):
                self._write_elements(out, shape)

    def _write_elements(self, out: Writer, shape: Shape) -> None:
        local: dict[str, Local | Element] = {}
        for op in self.members:
            value = _element_of(op, shape, local, out, self.op.outputs[0] in self.lowered.by_lanes)
            for name in op.outputs:
                place = [index(axis) for axis in range(len(shape))]
                local[name] = out.element(name, place) if name in self.op.outputs else out.local(name)
            if len(op.outputs) == 1:
                value = Cast(value, out.lowered.dtype(op.outputs[0]))
            out.add(Assign([local[name] for name in op.outputs], [value]))


def _element_of(op: Operator, shape: Shape, local: dict[str, Local | Element], out: Writer, is_by_lanes: bool) -> Value:
    """Return an operator's value for one element. `local` holds the variables that stay inside the loop."""
    lowering = op.definition.lowering
    if isinstance(lowering, Constant):
        return Number(lowering.value(op.attributes), out.lowered.dtype(op.outputs[0]))
    if isinstance(lowering, Spread):
        return _spread(op, lowering, shape, out)
    names_taken = values_taken(op)
    values: list[Value] = [local.get(name) or stretched(name, shape, out, is_by_lanes) for name in names_taken]
    if not lowering.settings and len(values) == 1:
        return values[0]
    for_integers = lowering.integers is not None and out.lowered.dtype(names_taken[0]) in INTEGERS
    function = out.called(lowering.integers if for_integers else lowering.function, op.type)
    return Call(function, (*values, *(out.settings(op) if lowering.settings else [])))


def _spread(op: Operator, lowering: Spread, shape: Shape, out: Writer) -> Value:
    """Return the element of a reduced value that belongs to an element of the whole."""
    reduced = str(op.inputs[0])
    axes = lowering.axes(op.attributes, [shape])
    value = out.number(reduced)
    if reduced not in out.lowered.constants:
        keeps_axes = len(out.lowered.shapes[reduced]) == len(shape)
        places = [a for a in range(len(shape)) if keeps_axes or a not in axes]
        value = out.element(reduced, [Number(0, COUNT) if a in axes else index(a) for a in places])
    if not lowering.share(op.attributes):
        return value
    dtype = out.lowered.dtype(op.outputs[0])
    return Infix(value, "/", Cast(Extent(product_of([shape[a] for a in sorted(axes)])), dtype), dtype)


def stretched(name: str, shape: Shape, out: Writer, is_by_lanes: bool = False) -> Value:
    """Return a variable's element that is broadcast to an element of the output."""
    if name in out.lowered.constants:
        return out.number(name)
    own = out.lowered.shapes[name]
    if is_by_lanes and name not in out.lowered.by_lanes:
        shape = (*shape[:2], 0, 0)  # it is the same for all elements of a channel
    offset = len(shape) - len(own)
    place: list[Value] = []
    for axis, size in enumerate(own):
        wide = shape[offset + axis]
        if size == 1 and wide != 1:
            place.append(Number(0, COUNT))
        elif size == wide:
            place.append(index(offset + axis))
        else:
            raise UnknownSizeError(f"{name} may or may not have to be broadcast: its size {size} may be {wide}")
    if not out.is_scattered(name):
        return out.element(name, place)
    if place[0] != index(0):
        raise UnknownSizeError(f"{name} is read at other rows than those of the batch")
    return Element(out.array_name(name), (Local("row", INDEX), *place[1:]), out.lowered.dtype(name))


def product_of(sizes: Sequence[AnySize]) -> AnySize:
    """Return the number of elements along some axes."""
    total: AnySize = 1
    for size in sizes:
        total = total * size
    return total


def lower_loop(op: Operator, lowered: Lowered) -> Step:
    """The step of an elementwise operator."""
    return LoopStep(op, lowered, lowered.share_of_rows(op))
