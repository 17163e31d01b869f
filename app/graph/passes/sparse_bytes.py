"""Replacement of products with `scale * bytes + shift`, for fed bytes, by products with the bytes themselves.

If most bytes are 0, as in images, such a product takes a fraction of the time, and the floats are never computed. Only
an engine that knows this of the data runs this pass.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from app.graph.passes.dead_code import dead_code
from app.graph.passes.rewrite import is_pure, with_operators, writes
from app.graph.program import Block, Operator, Program
from app.ops.byte_products import byte_product, transposed_byte_product, transposed_bytes
from app.ops.lowering import Alias, ByteProduct, Constant, Elementwise, Product, TransposedBytes
from app.ops.spec import UNKNOWN

LEAST_COLUMNS = 16
"""Products with fewer columns are as fast without this."""
LEAST_BYTES = 64
"""The number of bytes that are compared at once; rows must have at least as many."""
_ALL_BYTES = np.arange(256, dtype=np.uint8)


class Preparation(NamedTuple):
    """Floats computed from bytes: the name of the data, and `scale * bytes + shift`."""

    data: str
    scale: float
    shift: float


def sparse_bytes(program: Program, keep: Collection[str]) -> Program:
    """The Program with such products replaced; unchanged if other operators read the bytes too."""
    block = program.global_block()
    preparations = _Prepared(block)
    transposed: dict[str, str] = {}
    operators: list[Operator] = []
    added: list[tuple[str, Operator]] = []
    for op in block.ops:
        prepared = _prepared_factor(op, block, preparations)
        if prepared is None:
            operators.append(op)
            continue
        lowering: Product = op.definition.lowering
        numbers = {"scale": prepared.scale, "shift": prepared.shift}
        others = list(op.inputs[:-2])
        if not op.attributes[lowering.transposes[0]]:
            operators.append(Operator(byte_product, [prepared.data, op.inputs[-1]], op.outputs, numbers, op.role))
            continue
        if prepared.data not in transposed:
            transposed[prepared.data] = _unused(block, f"{prepared.data}.transposed")
            operators.append(Operator(transposed_bytes, [prepared.data], [transposed[prepared.data]], {}, op.role))
            added.append((transposed[prepared.data], operators[-1]))
        definition = transposed_byte_product.step if lowering.step else transposed_byte_product
        assert definition is not None
        inputs = [*others, transposed[prepared.data], op.inputs[-1]]
        operators.append(Operator(definition, inputs, op.outputs, numbers, op.role))
    changed = with_operators(program, operators, keep)
    for name, op in added:
        (spec,) = op.definition.infer_outputs([block.var(str(op.inputs[0])).spec], {})
        changed.global_block().create_var(name, spec.shape, spec.dtype, stop_gradient=True)
    changed = dead_code(changed, keep)
    return changed if _is_replaced(changed.global_block(), keep) else program


def _is_replaced(block: Block, keep: Collection[str]) -> bool:
    """Whether there are products with bytes, and no other operator reads their data."""
    kinds = (ByteProduct, TransposedBytes)
    data = {op.inputs[0] for op in block.ops if isinstance(op.definition.lowering, kinds)}
    others = {name for op in block.ops if not isinstance(op.definition.lowering, kinds) for name in op.inputs}
    return bool(data) and data.isdisjoint(others) and data.isdisjoint(keep)


def _unused(block: Block, name: str) -> str:
    return name if not block.has_var(name) else _unused(block, f"{name}_")


def _prepared_factor(op: Operator, block: Block, preparations: _Prepared) -> Preparation | None:
    """How the first factor of a product is computed from bytes; None if the product cannot be replaced."""
    lowering = op.definition.lowering
    if not isinstance(lowering, Product) or op.attributes[lowering.transposes[1]]:
        return None
    x, y = (block.var(str(name)) for name in op.inputs[-2:])
    if (x.dtype, len(x.shape), len(y.shape)) != ("float32", 2, 2) or x.shape[0] != UNKNOWN:
        return None
    columns = y.shape[1]
    if columns == UNKNOWN or columns < LEAST_COLUMNS or x.shape[1] == UNKNOWN or x.shape[1] < LEAST_BYTES:
        return None
    return preparations.preparation(x.name)


class _Prepared:
    """Finds variables that are `scale * bytes + shift`, by computing them for all 256 bytes."""

    def __init__(self, block: Block):
        self._block = block
        written = writes(block.ops)
        self._producers = {op.outputs[0]: op for op in block.ops if op.outputs and written[op.outputs[0]] == 1}
        self._cache: dict[str, tuple[str, np.ndarray] | None] = {}

    def preparation(self, name: str) -> Preparation | None:
        """How a variable is computed from bytes; None if it is not."""
        computed = self._of_all_bytes(name)
        if computed is None or not computed[0]:
            return None
        data, numbers = computed
        exact = numbers.astype(np.float64)
        scale, shift = (exact[255] - exact[0]) / 255, exact[0]
        if numbers.dtype != np.float32 or numbers.shape != (256,) or not np.isfinite(exact).all():
            return None
        error = np.abs(scale * _ALL_BYTES + shift - exact).max()
        if error > 4 * np.finfo(np.float32).eps * np.abs(exact).max():
            return None
        return Preparation(data, float(np.float32(scale)), float(np.float32(shift)))

    def _of_all_bytes(self, name: str) -> tuple[str, np.ndarray] | None:
        """The data that a variable is computed from ('' for a constant), and its values for the bytes 0 to 255."""
        if name not in self._cache:
            self._cache[name] = self._computed(name)
        return self._cache[name]

    def _computed(self, name: str) -> tuple[str, np.ndarray] | None:
        variable = self._block.var(name)
        if variable.is_data:
            rows = variable.dtype == "uint8" and len(variable.shape) > 1 and variable.shape[0] == UNKNOWN
            return (name, _ALL_BYTES) if rows and UNKNOWN not in variable.shape[1:] else None
        op = self._producers.get(name)
        if op is None or op.definition.custom or not is_pure(self._block, op) or len(op.outputs) != 1:
            return None
        lowering = op.definition.lowering
        if isinstance(lowering, Constant):
            return "", np.asarray(lowering.value(op.attributes), variable.dtype)
        if isinstance(lowering, Alias):
            return self._of_all_bytes(str(op.inputs[0])) if self._keeps_rows(op) else None
        if not isinstance(lowering, Elementwise):
            return None
        operands = [self._of_all_bytes(str(each)) for each in op.inputs]
        data = {each[0] for each in operands if each is not None} - {""}
        if None in operands or len(data) > 1 or not self._keeps_rows(op):
            return None
        with np.errstate(all="ignore"):
            results = op.definition.run([each[1] for each in operands if each is not None], op.attributes)
        return next(iter(data), ""), np.asarray(results)

    def _keeps_rows(self, op: Operator) -> bool:
        """Whether the output has the rows of the batch, with as many elements in each."""
        out = self._block.var(op.outputs[0]).shape
        return all(
            shape == () or _has_rows(shape, out)
            for shape in (self._block.var(str(name)).shape for name in op.inputs if name is not None)
            if UNKNOWN in shape
        )


def _has_rows(shape: Sequence[int], out: Sequence[int]) -> bool:
    flat = [sizes[0] == UNKNOWN and UNKNOWN not in sizes[1:] for sizes in (shape, out) if sizes]
    return flat == [True, True] and prod(shape[1:]) == prod(out[1:])
