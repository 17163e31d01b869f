"""Inverses, determinants and systems of linear equations, of one matrix or of a stack of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from app.errors import OperatorError, ShapeError
from app.ops.composed import composed, of_package
from app.ops.definition import REGISTRY, operator
from app.ops.elementwise import to_common_type
from app.ops.joining import stack
from app.ops.linear import matmul
from app.ops.matrix import tril, triu
from app.ops.shaping import squeeze, swapaxes, unsqueeze
from app.ops.spec import UNKNOWN, Spec, broadcast


def floats(values: list[Any]) -> list[Any]:
    """Inputs brought to one floating type."""
    return to_common_type(values, floating=True)


def through_lapack(function: Callable[..., Any], *matrices: Any) -> Any:
    """What a NumPy function of linear algebra gives, which knows no half precision."""
    if matrices[0].dtype != np.float16:
        return function(*matrices)
    found = function(*(m.astype(np.float32) for m in matrices))
    return tuple(f.astype(np.float16) for f in found) if isinstance(found, tuple) else found.astype(np.float16)


def check_square(x: Spec) -> None:
    """Refuse what is no square matrix, nor a stack of them."""
    if len(x.shape) < 2:
        raise ShapeError(f"a matrix has two axes, found shape {list(x.shape)}")
    if x.shape[-1] != x.shape[-2] and UNKNOWN not in x.shape[-2:]:
        raise ShapeError(f"expected square matrices, found shape {list(x.shape)}")


def _infer_square(x: Spec) -> Spec:
    check_square(x)
    return x


def _infer_numbers(x: Spec) -> Spec:
    check_square(x)
    return Spec(x.shape[:-2], x.dtype)


@operator(_infer_square, prepare=floats)
def inverse(x: Any) -> Any:
    """The inverse of a square matrix."""
    return through_lapack(np.linalg.inv, x)


@inverse.gradient
def _(out: Any, dout: Any) -> Any:
    return -matmul(matmul(out, dout, transpose_x=True), out, transpose_y=True)


@operator(_infer_numbers, prepare=floats)
def det(x: Any) -> Any:
    """The determinant of a square matrix."""
    return through_lapack(np.linalg.det, x)


@det.gradient
def _(x: Any, out: Any, dout: Any) -> Any:
    return _as_matrix(dout * out) * swapaxes(inverse(x), -1, -2)


@det.in_onnx
def _det_in_onnx(onnx: Any, x: Any) -> Any:
    wide = "float32" if x.dtype == "float16" else x.dtype  # as here: half precision is computed in single
    return onnx.Cast(onnx.Det(onnx.Cast(x, to=wide)), to=x.dtype)


def _as_matrix(number: Any) -> Any:
    return unsqueeze(number, axis=[-1, -2])


@operator(lambda x: (_infer_numbers(x), _infer_numbers(x)), outputs=("sign", "logarithm"), prepare=floats)
def sign_and_log_of_det(x: Any) -> Any:
    """The sign of the determinant, and the logarithm of its size."""
    return tuple(through_lapack(lambda m: tuple(np.linalg.slogdet(m)), x))


@sign_and_log_of_det.gradient
def _(x: Any, dlogarithm: Any) -> Any:
    return _as_matrix(dlogarithm) * swapaxes(inverse(x), -1, -2)


@sign_and_log_of_det.in_onnx
def _(onnx: Any, x: Any) -> Any:
    number = _det_in_onnx(onnx, x)
    return onnx.Sign(number), onnx.Log(onnx.Abs(number))


@composed
def slogdet(x: Any, name: Any = None) -> Any:
    """The sign of the determinant and the logarithm of its size, along a new first axis."""
    return stack(sign_and_log_of_det(x))


# Systems of equations


def _infer_solve(x: Spec, y: Spec) -> Spec:
    check_square(x)
    if len(y.shape) < 2 or (y.shape[-2] != x.shape[-1] and UNKNOWN not in (y.shape[-2], x.shape[-1])):
        raise ShapeError(f"equations of shape {list(x.shape)} have no right sides of shape {list(y.shape)}")
    return Spec((*broadcast(x.shape[:-2], y.shape[:-2]), *y.shape[-2:]), x.dtype)


@operator(_infer_solve, prepare=floats)
def solve_columns(x: Any, y: Any) -> Any:
    """The matrix whose product with `x` is `y`."""
    return through_lapack(np.linalg.solve, x, y)


@solve_columns.gradient_of("x")
def _(x: Any, out: Any, dout: Any) -> Any:
    gradient = solve_columns(swapaxes(x, -1, -2), dout)
    return REGISTRY["sum_like"](-matmul(gradient, out, transpose_y=True), x)


@solve_columns.gradient_of("y")
def _(x: Any, y_like: Any, dout: Any) -> Any:
    return REGISTRY["sum_like"](solve_columns(swapaxes(x, -1, -2), dout), y_like)


@composed
def solve(x: Any, y: Any, left: bool = True, name: Any = None) -> Any:
    """What `x` times it is `y`: a vector for a vector, a matrix for a matrix; not `left`, what it times `x` is."""
    if not left:
        return swapaxes(solve_columns(swapaxes(x, -1, -2), swapaxes(y, -1, -2)), -1, -2)
    if len(y.shape) == 1 or list(y.shape) == list(x.shape[:-1]):
        return squeeze(solve_columns(x, unsqueeze(y, axis=-1)), axis=-1)
    return solve_columns(x, y)


@composed
def triangular_solve(
    x: Any, y: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False, name: Any = None
) -> Any:
    """What the upper, or lower, part of `x` times it is `y`; `unitriangular` takes the diagonal for ones."""
    part = triu(x, 1 if unitriangular else 0) if upper else tril(x, -1 if unitriangular else 0)
    if unitriangular:
        part = part + np.eye(x.shape[-1], dtype=str(np.dtype(x.dtype)))
    return solve_columns(swapaxes(part, -1, -2) if transpose else part, y)


@composed
def cholesky_solve(x: Any, y: Any, upper: bool = False, name: Any = None) -> Any:
    """What A times it is `x`, where `y` is the Cholesky factor of A."""
    first = triangular_solve(y, x, upper, transpose=upper)
    return triangular_solve(y, first, upper, transpose=not upper)


# Powers and products


@composed
def matrix_power(x: Any, n: int, name: Any = None) -> Any:
    """The product of a square matrix with itself, n times; below zero, of its inverse."""
    if not isinstance(n, int):
        raise OperatorError(f"matrix_power: n is a whole number, not {n!r}")
    if n == 0:
        return x * 0 + np.eye(x.shape[-1], dtype=str(np.dtype(x.dtype)))
    base, left = (x, n) if n > 0 else (inverse(x), -n)
    out = None
    while left:
        if left % 2:
            out = base if out is None else matmul(out, base)
        left //= 2
        base = matmul(base, base) if left else base
    return out


@of_package
def multi_dot(x: Any, name: Any = None) -> Any:
    """The product of several matrices, in the order of fewest multiplications."""
    if len(x) < 2:
        raise OperatorError(f"multi_dot multiplies two matrices or more, found {len(x)}")
    sizes = [x[0].shape[0] if len(x[0].shape) > 1 else 1, *(m.shape[0] for m in x[1:])]
    sizes.append(x[-1].shape[-1] if len(x[-1].shape) > 1 else 1)
    best: dict[tuple[int, int], tuple[float, int]] = {(i, i): (0.0, i) for i in range(len(x))}
    for length in range(1, len(x)):
        for i in range(len(x) - length):
            j = i + length
            best[i, j] = min(
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> Any:
        if i == j:
            return x[i]
        cut = best[i, j][1]
        return matmul(product(i, cut), product(cut + 1, j))

    return product(0, len(x) - 1)
