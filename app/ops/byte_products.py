"""Matrix products with bytes, most of which are 0, such as the pixels of MNIST: `(scale * bytes + shift) @ w`.

The pass `opsmith.graph.passes.sparse_bytes` replaces products by these operators; users do not call them.
"""

from __future__ import annotations

import numpy as np

from app.errors import ShapeError
from app.ops.definition import operator
from app.ops.lowering import ByteProduct, TransposedBytes
from app.ops.size import AnySize
from app.ops.spec import UNKNOWN, Spec, count
from app.ops.values import Array, Results

BLOCK = 64
"""The number of rows in a block of transposed bytes."""


def _blocks(rows: AnySize) -> AnySize:
    return rows if rows == UNKNOWN else (rows + BLOCK - 1) // BLOCK


def _columns(data: Spec) -> AnySize:
    """The number of bytes in a row of the batch."""
    return count(data.shape[1:])


@operator(lambda data: Spec((_blocks(data.shape[0]), _columns(data), BLOCK), data.dtype), lowering=TransposedBytes())
def transposed_bytes(data: Array) -> Results:
    """The bytes of a batch column by column, in blocks of 64 rows; the last block is padded with zeros."""
    flat = data.reshape(len(data), -1)
    padded = np.zeros((int(_blocks(len(flat))) * BLOCK, flat.shape[1]), flat.dtype)
    padded[: len(flat)] = flat
    return np.ascontiguousarray(padded.reshape(-1, BLOCK, flat.shape[1]).swapaxes(1, 2))


def _infer_product(data: Spec, w: Spec, **numbers: float) -> Spec:
    inner = _columns(data), w.shape[0]
    if UNKNOWN not in inner and inner[0] != inner[1]:
        raise ShapeError(f"the inner sizes differ: {inner[0]} and {inner[1]}")
    return Spec((data.shape[0], w.shape[1]), w.dtype)


@operator(_infer_product, lowering=ByteProduct())
def byte_product(data: Array, w: Array, *, scale: float, shift: float) -> Results:
    """`(scale * data + shift) @ w`, with the rows of the bytes flattened."""
    return _numbers(data.reshape(len(data), -1), w.dtype, scale, shift) @ w


def _numbers(data: Array, dtype: np.dtype, scale: float, shift: float) -> Array:
    return data.astype(dtype) * dtype.type(scale) + dtype.type(shift)


def _infer_transposed_product(transposed: Spec, y: Spec, **numbers: float) -> Spec:
    return Spec((transposed.shape[1], y.shape[1]), y.dtype)


@operator(_infer_transposed_product, lowering=ByteProduct(transposed=True))
def transposed_byte_product(transposed: Array, y: Array, *, scale: float, shift: float) -> Results:
    """`(scale * data + shift).T @ y`, from transposed bytes."""
    columns = transposed.swapaxes(0, 1).reshape(transposed.shape[1], -1)[:, : len(y)]
    return _numbers(columns, y.dtype, scale, shift) @ y


@operator(lambda c, rate, transposed, y, **numbers: c, lowering=ByteProduct(transposed=True, step=True))
def transposed_byte_product_step(
    c: Array, rate: Array, transposed: Array, y: Array, *, scale: float, shift: float
) -> Results:
    """c - rate * product: an optimiser's step fused with the product that computes the gradient."""
    product = transposed_byte_product.kernel(transposed, y, scale=scale, shift=shift)
    return np.asarray(c - rate * product, c.dtype)


transposed_byte_product.step = transposed_byte_product_step
