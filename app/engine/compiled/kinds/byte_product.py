"""Steps that are a product with the bytes of a batch, and skip zero bytes."""

from __future__ import annotations

from typing import Any

from app.engine.compiled import byte_products
from app.engine.compiled.kinds.native import NativeStep
from app.engine.compiled.language import ANY, Array, Extent, Negative, Number, Value
from app.engine.compiled.shapes import N
from app.engine.compiled.steps import Lowered, Share, Step
from app.engine.compiled.writer import Writer
from app.graph.program import Operator
from app.ops.lowering import ByteProduct

ROWS = Array("rows")
SHARE_OF_BYTES = 4
"""Estimate: one byte in this many is nonzero."""


class _OfBytes(NativeStep):
    """A step on the bytes of a batch."""

    def __init__(self, op: Operator, lowered: Lowered, verdict: str, share: Share):
        super().__init__(op, lowered, f"compiled: {verdict}", share)

    def _numbers(self) -> list[Value]:
        return [Number(self.op.attributes[name], "float32") for name in ("scale", "shift")]

    def _columns(self) -> int:
        return int(self.lowered.shapes[self.op.outputs[0]][1])

    def operations(self, n: int) -> int:
        rows, columns = self.lowered.shape_at(self.op.outputs[0], n)
        return rows * columns * self._added(n) // SHARE_OF_BYTES

    def _added(self, n: int) -> int:
        """Return how many products are added for each number of the result."""
        raise NotImplementedError


class TransposedBytesStep(_OfBytes):
    """Transposes the bytes of a batch. Each thread does the columns that it will need."""

    picks_rows = True

    def __init__(self, op: Operator, lowered: Lowered):
        self._size = int(lowered.shapes[op.outputs[0]][1])
        super().__init__(op, lowered, "fed bytes, transposed", self._size)

    def operations(self, n: int) -> int:
        return self.lowered.elements(self.op.outputs[0], n)

    def write(self, out: Writer) -> None:
        function = byte_products.transposed_function(self._size)
        data = Array(out.raw(str(self.op.inputs[0])))
        out.do(
            out.called(function, function.name), data, ROWS, Extent(N), *out.bounds(self), out.array(self.op.outputs[0])
        )


class ByteProductStep(_OfBytes):
    """A product of the bytes of a batch with a matrix."""

    begins_part = True
    picks_rows = True

    def __init__(self, op: Operator, lowered: Lowered):
        super().__init__(op, lowered, "fed bytes, zeros skipped", lowered.share_of_rows(op))
        self._size = int(lowered.shapes[str(op.inputs[1])][0])

    def _reads_own_rows(self, name: str) -> bool:
        return name == self.op.inputs[0]

    def _added(self, n: int) -> int:
        return self._size

    def write(self, out: Writer) -> None:
        function = byte_products.product_function(self._size, self._columns())
        data, w = Array(out.raw(str(self.op.inputs[0]))), out.array(str(self.op.inputs[1]))
        out.do(
            out.called(function, function.name),
            data,
            ROWS,
            *out.bounds(self),
            *self._numbers(),
            w,
            out.array(self.op.outputs[0]),
        )


class TransposedProductStep(_OfBytes):
    """A product of transposed bytes with a matrix, as is the gradient of weights; or an optimiser's step by one."""

    begins_part = True

    def __init__(self, op: Operator, lowered: Lowered):
        self._form: ByteProduct = op.definition.lowering
        rest = ", the update in the same call" if self._form.step else ""
        rows = lowered.shapes[op.outputs[0]][0]
        super().__init__(op, lowered, f"transposed bytes, zeros skipped{rest}", int(rows))

    def keeps_to_share(self, name: str) -> bool:
        own = name == self.op.inputs[-2] or (self._form.step and name == self.op.inputs[0])
        return own and self.lowered.root(name) != self.lowered.root(str(self.op.inputs[-1]))

    def _added(self, n: int) -> int:
        return self.lowered.shape_at(str(self.op.inputs[-1]), n)[0]

    def write(self, out: Writer) -> None:
        result = self.op.outputs[0]
        factor: Value = Number(1.0, "float32")
        if self._form.step:
            base, rate = (str(name) for name in self.op.inputs[:2])
            factor = Negative(out.number(rate), ANY)
            if base != result:
                out.copy(out.name(base), result, self)
        function = byte_products.transposed_product_function(self._columns(), self._form.step)
        transposed, y = (out.array(str(name)) for name in self.op.inputs[-2:])
        sizes = Extent(self.lowered.shapes[str(self.op.inputs[-2])][1]), Extent(N)
        out.do(
            out.called(function, function.name),
            transposed,
            *sizes,
            *out.bounds(self),
            factor,
            *self._numbers(),
            y,
            out.array(result),
        )


def lower_transposed_bytes(op: Operator, lowered: Lowered) -> Step:
    """The step that transposes bytes."""
    return TransposedBytesStep(op, lowered)


def lower_byte_product(op: Operator, lowered: Lowered) -> Step:
    """The step of a product of bytes."""
    lowering: ByteProduct = op.definition.lowering
    kind: Any = TransposedProductStep if lowering.transposed else ByteProductStep
    step: Step = kind(op, lowered)
    return step
