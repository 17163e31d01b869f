"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import DtypeError, ShapeError
from app.ops.definition import REGISTRY, operator
from app.ops.elementwise import to_common_type
from app.ops.lowering import Product
from app.ops.public import public
from app.ops.size import Shape
from app.ops.spec import UNKNOWN, Spec, broadcast, differ
from app.ops.values import Applied, Array, Gradient, Gradients, Results, Value


def _infer_matmul(x: Spec, y: Spec, *, transpose_x: bool = False, transpose_y: bool = False) -> Spec:
    if x.dtype != y.dtype:
        raise DtypeError(f"expected two values of one element type, found {x.dtype} and {y.dtype}")
    if not x.shape or not y.shape:
        raise ShapeError("matmul needs values with at least one axis, found a scalar")
    left = (1, *x.shape) if len(x.shape) == 1 else _transposed(x.shape, transpose_x)
    right = (*y.shape, 1) if len(y.shape) == 1 else _transposed(y.shape, transpose_y)
    if left[-1] != right[-2] and UNKNOWN not in (left[-1], right[-2]):
        raise ShapeError(f"the inner sizes differ: {left[-1]} and {right[-2]}")
    rows = left[-2:-1] if len(x.shape) > 1 else ()
    columns = right[-1:] if len(y.shape) > 1 else ()
    return Spec(broadcast(left[:-2], right[:-2]) + rows + columns, x.dtype)


def _transposed(shape: Shape, transpose: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if transpose else shape


@public(method=True)
@operator(_infer_matmul, prepare=to_common_type, lowering=Product(transposes=("transpose_x", "transpose_y")))
def matmul(x: Array, y: Array, *, transpose_x: bool = False, transpose_y: bool = False) -> Results:
    """Matrix product, broadcast over leading axes; each matrix may be transposed first, and vectors are allowed."""
    if transpose_x and x.ndim > 1:
        x = x.swapaxes(-1, -2)
    if transpose_y and y.ndim > 1:
        y = y.swapaxes(-1, -2)
    return np.matmul(x, y)


@matmul.gradient_of("x")
def _(x_like: Value, y: Value, dout: Value, transpose_x: bool, transpose_y: bool) -> Gradients:
    like, y, dout, transpose_x, transpose_y = _as_matrices(x_like, y, dout, transpose_x, transpose_y)
    if transpose_x:
        gradient = matmul(y, dout, transpose_x=transpose_y, transpose_y=True)
    else:
        gradient = matmul(dout, y, transpose_y=not transpose_y)
    return _of_input(gradient, like, x_like)


@matmul.gradient_of("y")
def _(x: Value, y_like: Value, dout: Value, transpose_x: bool, transpose_y: bool) -> Gradients:
    x, like, dout, transpose_x, transpose_y = _as_matrices(x, y_like, dout, transpose_x, transpose_y)
    if transpose_y:
        gradient = matmul(dout, x, transpose_x=True, transpose_y=transpose_x)
    else:
        gradient = matmul(x, dout, transpose_x=not transpose_x)
    return _of_input(gradient, like, y_like)


def _as_matrices(
    x: Value, y: Value, dout: Value, transpose_x: bool, transpose_y: bool
) -> tuple[Value, Value, Value, bool, bool]:
    """The same product with vectors as matrices of one row or one column, which are not transposed."""
    unsqueeze = REGISTRY["unsqueeze"]
    if len(y.shape) == 1:
        y, dout, transpose_y = unsqueeze(y, axis=-1), unsqueeze(dout, axis=-1), False
    if len(x.shape) == 1:
        x, dout, transpose_x = unsqueeze(x, axis=0), unsqueeze(dout, axis=-2), False
    return x, y, dout, transpose_x, transpose_y


def _of_input(gradient: Gradient, like: Value, x: Value) -> Gradient:
    """The gradient of an input: summed over the leading axes along which its matrices, `like`, were broadcast."""
    if len(gradient.shape) > 2 and (tuple(gradient.shape) != tuple(like.shape) or UNKNOWN in like.shape[:-2]):
        gradient = REGISTRY["sum_like"](gradient, like)
    return gradient if like is x else REGISTRY["reshape_like"](gradient, x)


@matmul.in_onnx
def _(onnx: Any, x: Any, y: Any, transpose_x: bool, transpose_y: bool) -> Any:
    """The product with vectors as matrices: ONNX Runtime drops a transposition next to a vector when it fuses nodes."""
    left = onnx.Unsqueeze(x, [0]) if x.rank == 1 else _transposed_in_onnx(onnx, x, transpose_x)
    right = onnx.Unsqueeze(y, [1]) if y.rank == 1 else _transposed_in_onnx(onnx, y, transpose_y)
    rank = max(x.rank, y.rank, 2)
    dropped = [*([rank - 2] if x.rank == 1 else []), *([rank - 1] if y.rank == 1 else [])]
    product = onnx.MatMul(left, right)
    return onnx.Squeeze(product, dropped) if dropped else product


def _transposed_in_onnx(onnx: Any, x: Any, transpose: bool) -> Any:
    order = list(range(x.rank))
    return onnx.Transpose(x, perm=[*order[:-2], order[-1], order[-2]]) if transpose else x


def _infer_step(c: Spec, scale: Spec, x: Spec, y: Spec, **attributes: bool) -> Spec:
    product = _infer_matmul(x, y, **attributes)
    if product.shape != c.shape:
        raise ShapeError(f"a product of shape {list(product.shape)} cannot update a matrix of shape {list(c.shape)}")
    return c


@operator(_infer_step, lowering=Product(transposes=("transpose_x", "transpose_y"), step=True))
def matmul_step(
    c: Array, scale: Array, x: Array, y: Array, *, transpose_x: bool = False, transpose_y: bool = False
) -> Results:
    """c - scale * x @ y: an optimiser's step fused with the product that computes the gradient."""
    product = matmul.kernel(x, y, transpose_x=transpose_x, transpose_y=transpose_y)
    return np.asarray(c - scale * product, c.dtype)


matmul.step = matmul_step


@public(method=True)
def mm(input: Value, mat2: Value) -> Applied:
    """Product of two matrices."""
    return matmul(input, mat2)


@public(method=True)
def dot(x: Value, y: Value) -> Applied:
    """Dot product of two vectors, or of each pair of rows of two matrices."""
    if differ(x.shape, y.shape):
        raise ShapeError(f"dot needs values of one shape, found {list(x.shape)} and {list(y.shape)}")
    return REGISTRY["sum"](x * y, axis=-1)
