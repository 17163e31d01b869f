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
from app.ops.spec import UNKNOWN, Spec, broadcast
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
    if len(x_like.shape) == 1 or len(y.shape) == 1:
        return _through_matrices(x_like, y, dout, transpose_x, transpose_y)[0]
    if transpose_x:
        gradient = matmul(y, dout, transpose_x=transpose_y, transpose_y=True)
    else:
        gradient = matmul(dout, y, transpose_y=not transpose_y)
    return _unstacked(gradient, x_like)


@matmul.gradient_of("y")
def _(x: Value, y_like: Value, dout: Value, transpose_x: bool, transpose_y: bool) -> Gradients:
    if len(x.shape) == 1 or len(y_like.shape) == 1:
        return _through_matrices(x, y_like, dout, transpose_x, transpose_y)[1]
    if transpose_y:
        gradient = matmul(dout, x, transpose_x=True, transpose_y=transpose_x)
    else:
        gradient = matmul(x, dout, transpose_x=not transpose_x)
    return _unstacked(gradient, y_like)


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


def _unstacked(gradient: Gradient, like: Value) -> Gradient:
    """Sum over the leading axes along which `like` was broadcast."""
    if len(gradient.shape) == 2 or (tuple(gradient.shape) == tuple(like.shape) and UNKNOWN not in like.shape[:-2]):
        return gradient
    return REGISTRY["sum_like"](gradient, like)


def _through_matrices(
    x: Value, y: Value, dout: Value, transpose_x: bool, transpose_y: bool
) -> tuple[Gradient, Gradient]:
    """The gradients of a product with a vector, which is treated as a matrix with one row or one column."""
    unsqueeze, reshape_like = REGISTRY["unsqueeze"], REGISTRY["reshape_like"]
    turn_x, turn_y = transpose_x and len(x.shape) > 1, transpose_y and len(y.shape) > 1
    left, right = x, y
    if len(y.shape) == 1:
        dout, right = unsqueeze(dout, axis=-1), unsqueeze(y, axis=-1)
    if len(x.shape) == 1:
        dout, left = unsqueeze(dout, axis=-2), unsqueeze(x, axis=0)
    dleft = (
        matmul(right, dout, transpose_x=turn_y, transpose_y=True)
        if turn_x
        else matmul(dout, right, transpose_y=not turn_y)
    )
    dright = (
        matmul(dout, left, transpose_x=True, transpose_y=turn_x)
        if turn_y
        else matmul(left, dout, transpose_x=not turn_x)
    )
    return reshape_like(_unstacked(dleft, left), x), reshape_like(_unstacked(dright, right), y)


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
    return c - scale * matmul.kernel(x, y, transpose_x=transpose_x, transpose_y=transpose_y)


matmul.step = matmul_step


@public(method=True)
def mm(input: Value, mat2: Value, name: str | None = None) -> Applied:
    """Product of two matrices."""
    return matmul(input, mat2)


@public(method=True)
def bmm(x: Value, y: Value, name: str | None = None) -> Applied:
    """Batched matrix product of two values with three axes."""
    if len(x.shape) != 3 or len(y.shape) != 3:
        raise ShapeError(f"bmm needs values with three axes, found shapes {list(x.shape)} and {list(y.shape)}")
    return matmul(x, y)


@public(method=True)
def dot(x: Value, y: Value, name: str | None = None) -> Applied:
    """Dot product of two vectors, or of each pair of rows of two matrices."""
    return REGISTRY["sum"](x * y, axis=-1)
