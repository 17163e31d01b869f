"""Steps that are a product of two matrices, which BLAS computes."""

from __future__ import annotations

from math import isqrt, prod

from app.engine.compiled.kinds.native import NativeStep, NotNativeError
from app.engine.compiled.language import Negative, Number, Value
from app.engine.compiled.steps import Lowered, Step
from app.engine.compiled.writer import Writer
from app.graph.program import Operator
from app.ops.lowering import Product


class ProductStep(NativeStep):
    """A product, or an optimiser's step by one: `c - scale * x @ y`."""

    begins_part = True

    def __init__(self, op: Operator, lowered: Lowered):
        self._form: Product = op.definition.lowering
        verdict = "compiled: BLAS" + (", the update in the same call" if self._form.step else "")
        super().__init__(op, lowered, verdict, lowered.share_of_rows(op))

    def _reads_own_rows(self, name: str) -> bool:
        x, y = self.op.inputs[-2:]  # they may be one variable
        return name != y and (name != x or not self.op.attributes[self._form.transposes[0]])

    def operations(self, n: int) -> int:
        names = [str(name) for name in (*self.op.inputs[-2:], *self.op.outputs)]
        return isqrt(prod(self.lowered.elements(name, n) for name in names))  # of (a, b) and (b, c) to (a, c): a b c

    def write(self, out: Writer) -> None:
        x, y = (out.array(str(name)) for name in self.op.inputs[-2:])
        result = self.op.outputs[0]
        dtype = self.lowered.dtype(result)
        scale: Value = Number(1.0, dtype)
        keep = Number(0.0, dtype)
        if self._form.step:
            base, factor = (str(name) for name in self.op.inputs[:2])
            scale, keep = Negative(out.number(factor), dtype), Number(1.0, dtype)
            if base != result:
                out.copy(out.name(base), result, self)
        turn_x, turn_y = (Number(self.op.attributes[name], "bool") for name in self._form.transposes)
        function = "product32" if dtype == "float32" else "product64"
        out.do(function, x, turn_x, y, turn_y, out.array(result), *out.bounds(self), scale, keep)


def lower_product(op: Operator, lowered: Lowered) -> Step:
    """The step of a product of two matrices of floats."""
    x, y = (str(name) for name in op.inputs[-2:])
    if (len(lowered.shapes[x]), len(lowered.shapes[y])) != (2, 2) or lowered.dtype(x) not in ("float32", "float64"):
        raise NotNativeError("not a product of two float matrices")
    return ProductStep(op, lowered)
