"""Triangles and diagonals of matrices, and products composed of `matmul`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.errors import OperatorError, ShapeError
from app.ops.definition import operator
from app.ops.joining import concat, split
from app.ops.linear import matmul
from app.ops.public import public
from app.ops.reduction import sum_
from app.ops.shaping import reshape, transpose
from app.ops.size import AnySize, larger, smaller
from app.ops.spec import UNKNOWN, Spec, count, normal_axis, plain_sizes
from app.ops.values import Applied, Array, Gradients, OnnxNodes, OnnxResult, OnnxValue, Results, Value


def _infer_part(x: Spec, *, diagonal: int = 0) -> Spec:
    if len(x.shape) < 2:
        raise ShapeError(f"expected a value with at least two axes, found shape {list(x.shape)}")
    return x


@public(method=True, in_place=True)
@operator(_infer_part, checked=True)
def tril(x: Array, *, diagonal: int = 0) -> Results:
    """Lower triangle of matrices; elements above a diagonal are zero."""
    return np.tril(x, diagonal)


@tril.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, diagonal: int) -> OnnxResult:
    return onnx.Trilu(x, np.int64(diagonal), upper=0)


@public(method=True, in_place=True)
@operator(_infer_part, checked=True)
def triu(x: Array, *, diagonal: int = 0) -> Results:
    """Upper triangle of matrices; elements below a diagonal are zero."""
    return np.triu(x, diagonal)


@triu.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, diagonal: int) -> OnnxResult:
    return onnx.Trilu(x, np.int64(diagonal), upper=1)


@tril.gradient
def _(dout: Value, diagonal: int) -> Gradients:
    return tril(dout, diagonal=diagonal)


@triu.gradient
def _(dout: Value, diagonal: int) -> Gradients:
    return triu(dout, diagonal=diagonal)


def _infer_diagonal(x: Spec, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Spec:
    first, second = normal_axis(axis1, len(x.shape)), normal_axis(axis2, len(x.shape))
    if first == second or len(x.shape) < 2:
        raise ShapeError(f"a diagonal needs two different axes, found {axis1} and {axis2} of shape {list(x.shape)}")
    rows, columns = x.shape[first], x.shape[second]
    length: AnySize = UNKNOWN
    if UNKNOWN not in (rows, columns):
        length = larger(0, smaller(rows, columns - offset) if offset >= 0 else smaller(rows + offset, columns))
    return Spec((*(n for a, n in enumerate(x.shape) if a not in (first, second)), length), x.dtype)


@public(method=True)
@operator(_infer_diagonal, checked=True)
def diagonal(x: Array, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Results:
    """Diagonal along two axes, as the last axis of the result."""
    return np.diagonal(x, offset, axis1, axis2).copy()


@diagonal.gradient
def _(x_like: Value, dout: Value, offset: int, axis1: int, axis2: int) -> Gradients:
    return place_diagonal(dout, x_like, offset=offset, axis1=axis1, axis2=axis2)


@diagonal.in_onnx
def _diagonal_in_onnx(onnx: OnnxNodes, x: OnnxValue, offset: int, axis1: int, axis2: int) -> OnnxResult:
    ends = [normal_axis(axis1, x.rank), normal_axis(axis2, x.rank)]
    rows, columns = (x.shape[a] for a in ends)
    length = _infer_diagonal(Spec(x.shape, x.dtype), offset=offset, axis1=axis1, axis2=axis2).shape[-1]
    if UNKNOWN in (rows, columns):
        raise OperatorError(f"the sizes of its axes {axis1} and {axis2} must be known, found shape {list(x.shape)}")
    last = onnx.Transpose(x, perm=[*(a for a in range(x.rank) if a not in ends), *ends])
    lines = onnx.Reshape(last, onnx.listed(onnx.Shape(last, start=0, end=-2), [rows * columns]), allowzero=1)
    places = np.arange(int(length)) * (int(columns) + 1) + (offset if offset > 0 else -offset * int(columns))
    return onnx.Gather(lines, places, axis=x.rank - 2)


@operator(lambda y, like, *, offset=0, axis1=0, axis2=1: Spec(like.shape, y.dtype))
def place_diagonal(y: Array, like: Array, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Results:
    """Zeros in the shape of `like` with `y` on a diagonal."""
    out = np.zeros(like.shape, y.dtype)
    moved = np.moveaxis(out, (axis1, axis2), (-2, -1))
    rows = np.arange(y.shape[-1]) + max(-offset, 0)
    moved[..., rows, rows + offset] = y
    return out


@place_diagonal.gradient_of("y")
def _(dout: Value, offset: int, axis1: int, axis2: int) -> Gradients:
    return diagonal(dout, offset=offset, axis1=axis1, axis2=axis2)


@place_diagonal.in_onnx
def _(onnx: OnnxNodes, y: OnnxValue, like: OnnxValue, offset: int, axis1: int, axis2: int) -> OnnxResult:
    return onnx.placed(y, like, lambda places: _diagonal_in_onnx(onnx, places, offset, axis1, axis2))


def _infer_diag_embed(x: Spec, *, offset: int = 0) -> Spec:
    if not x.shape:
        raise ShapeError("expected a value with at least one axis, found a scalar")
    size = UNKNOWN if x.shape[-1] == UNKNOWN else x.shape[-1] + abs(offset)
    return Spec((*x.shape[:-1], size, size), x.dtype)


@public(method=True)
@operator(_infer_diag_embed, checked=True)
def diag_embed(x: Array, *, offset: int = 0) -> Results:
    """Square matrices with the last axis on a diagonal, and zeros elsewhere."""
    size = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], size, size), x.dtype)
    rows = np.arange(x.shape[-1]) + max(-offset, 0)
    out[..., rows, rows + offset] = x
    return out


@diag_embed.gradient
def _(dout: Value, offset: int) -> Gradients:
    return diagonal(dout, offset=offset, axis1=-2, axis2=-1)


@diag_embed.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, offset: int) -> OnnxResult:
    size = x.shape[-1]
    if size == UNKNOWN:
        raise OperatorError(f"the size of its last axis must be known, found shape {list(x.shape)}")
    before, after = max(-offset, 0), max(offset, 0)
    rows = onnx.Pad(x, [*[0] * (x.rank - 1), before, *[0] * (x.rank - 1), after])
    on_it = np.eye(int(size) + before + after, k=offset, dtype=bool)
    return onnx.Where(on_it, onnx.Unsqueeze(rows, [-1]), np.zeros((), x.dtype))


@public(method=True)
def diag(x: Value, offset: int = 0, padding_value: float = 0, name: str | None = None) -> Applied:
    """Matrix with a vector on a diagonal, or diagonal of a matrix."""
    if len(x.shape) == 2:
        return diagonal(x, offset=offset)
    if len(x.shape) != 1:
        raise ShapeError(f"diag needs a vector or a matrix, found shape {list(x.shape)}")
    matrix = diag_embed(x, offset=offset)
    if not padding_value:
        return matrix
    return matrix + (1 - diag_embed(x * 0 + 1, offset=offset)) * padding_value


@public(method=True)
def trace(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Applied:
    """Sum of a diagonal."""
    return sum_(diagonal(x, offset=offset, axis1=axis1, axis2=axis2), axis=-1)


# Products


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
def mv(x: Value, vec: Value, name: str | None = None) -> Applied:
    """Product of a matrix and a vector."""
    return matmul(x, vec)


@public(method=True)
def dot(x: Value, y: Value, name: str | None = None) -> Applied:
    """Dot product of two vectors, or of each pair of rows of two matrices."""
    return sum_(x * y, axis=-1)


@public(method=True)
def inner(x: Value, y: Value, name: str | None = None) -> Applied:
    """Inner product: sum of products over the last axes of two values."""
    if not x.shape or not y.shape:
        return x * y
    rows, columns = reshape(x, [-1, x.shape[-1]]), reshape(y, [-1, y.shape[-1]])
    return reshape(matmul(rows, columns, transpose_y=True), [*x.shape[:-1], *y.shape[:-1]])


@public(method=True)
def outer(x: Value, y: Value, name: str | None = None) -> Applied:
    """Outer product of two flattened values."""
    return reshape(x, [-1, 1]) * reshape(y, [1, -1])


@public(method=True, in_place=True)
def addmm(input: Value, x: Value, y: Value, beta: float = 1.0, alpha: float = 1.0, name: str | None = None) -> Applied:
    """beta * input + alpha * x @ y."""
    return input * beta + matmul(x, y) * alpha


@public(method=True)
def kron(x: Value, y: Value, name: str | None = None) -> Applied:
    """Kronecker product."""
    rank = max(len(x.shape), len(y.shape))
    left, right = ([1] * (rank - len(v.shape)) + list(plain_sizes(v.shape)) for v in (x, y))
    apart = reshape(x, [n for size in left for n in (size, 1)]) * reshape(y, [n for size in right for n in (1, size)])
    return reshape(apart, [UNKNOWN if UNKNOWN in (a, b) else a * b for a, b in zip(left, right, strict=True)])


@public(method=True)
def tensordot(
    x: Value, y: Value, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2, name: str | None = None
) -> Applied:
    """Tensor contraction over the last `axes` axes of `x` and the first of `y`, or over the axes listed for each."""
    if isinstance(axes, int):
        left, right = list(range(len(x.shape) - axes, len(x.shape))), list(range(axes))
    else:
        listed = [[a] if isinstance(a, int) else list(a) for a in axes]
        left, right = listed if len(listed) == 2 else (listed[0], listed[0])
    left, right = ([normal_axis(a, len(v.shape)) for a in some] for v, some in ((x, left), (y, right)))
    kept = [[a for a in range(len(v.shape)) if a not in some] for v, some in ((x, left), (y, right))]
    shape = [x.shape[a] for a in kept[0]] + [y.shape[a] for a in kept[1]]
    inside = count(plain_sizes(y.shape[a] for a in right))
    rows = reshape(transpose(x, perm=[*kept[0], *left]), [-1, inside])
    columns = reshape(transpose(y, perm=[*right, *kept[1]]), [inside, -1])
    return reshape(matmul(rows, columns), shape)


@public(method=True)
def cross(x: Value, y: Value, axis: int | None = None, name: str | None = None) -> Applied:
    """Cross product along an axis of size 3, by default the first such axis."""
    if axis is None:
        axis = next((i for i, size in enumerate(x.shape) if size == 3), 0)
    if not x.shape or x.shape[axis] != 3:
        raise ShapeError(f"cross needs an axis of size 3, found shape {list(x.shape)}")
    a, b, c = split(x, 3, axis)
    d, e, f = split(y, 3, axis)
    return concat([b * f - c * e, c * d - a * f, a * e - b * d], axis)


@public(method=True)
def diagflat(x: Value, offset: int = 0, name: str | None = None) -> Applied:
    """Matrix with a flattened value on a diagonal."""
    return diag_embed(reshape(x, [-1]), offset=offset)
