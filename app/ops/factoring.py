"""Matrices as products of simpler ones, and what follows from their factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import OperatorError, ShapeError
from app.ops.composed import composed
from app.ops.definition import operator
from app.ops.linear import matmul
from app.ops.logic import where
from app.ops.matrix import diag_embed, diagonal, tril
from app.ops.reduction import max, sum
from app.ops.shaping import cast, swapaxes, unsqueeze
from app.ops.solving import check_square, floats, inverse, through_lapack
from app.ops.spec import UNKNOWN, Spec


def _turned(x: Any) -> Any:
    return swapaxes(x, -1, -2)


def _symmetric(x: Any) -> Any:
    """The mean of matrices and their transposes, so that gradients are symmetric as the matrices are."""
    return (x + np.swapaxes(x, -1, -2)) * x.dtype.type(0.5)


def _infer_cholesky(x: Spec) -> Spec:
    check_square(x)
    return x


@operator(_infer_cholesky, prepare=floats)
def lower_cholesky(x: Any) -> Any:
    """The lower triangular matrix whose product with its transpose is the symmetric part of `x`."""
    return through_lapack(np.linalg.cholesky, _symmetric(x))


@lower_cholesky.gradient
def _(out: Any, dout: Any) -> Any:
    below = tril(matmul(out, dout, transpose_x=True))
    inner = below - diag_embed(diagonal(below, axis1=-2, axis2=-1)) * 0.5
    back = inverse(out)
    whole = matmul(matmul(back, inner, transpose_x=True), back)
    return (whole + _turned(whole)) * 0.5


@composed
def cholesky(x: Any, upper: bool = False, name: Any = None) -> Any:
    """The triangular matrix whose product with its transpose is `x`, which is symmetric and positive."""
    lower = lower_cholesky(x)
    return _turned(lower) if upper else lower


def _infer_qr(x: Spec, *, mode: str = "reduced") -> tuple[Spec, Spec]:
    rows, columns = _sizes(x)
    inner = rows if mode == "complete" else _least(rows, columns)
    return Spec((*x.shape[:-1], inner), x.dtype), Spec((*x.shape[:-2], inner, columns), x.dtype)


def _sizes(x: Spec) -> tuple[int, int]:
    if len(x.shape) < 2:
        raise ShapeError(f"a matrix has two axes, found shape {list(x.shape)}")
    return x.shape[-2], x.shape[-1]


def _least(rows: int, columns: int) -> int:
    return UNKNOWN if UNKNOWN in (rows, columns) else min((rows, columns))


def _qr(x: Any, mode: Any) -> Any:
    return tuple(np.linalg.qr(x, mode))


@operator(_infer_qr, outputs=("q", "r"), prepare=floats)
def qr_factors(x: Any, *, mode: str = "reduced") -> Any:
    """A matrix with orthogonal columns and an upper triangular one, whose product is `x`."""
    return through_lapack(lambda m: _qr(m, mode), x)


@qr_factors.gradient
def _(q: Any, r: Any, dq: Any, dr: Any) -> Any:
    if q.shape[-1] != r.shape[-1] and UNKNOWN not in (q.shape[-1], r.shape[-1]):
        raise OperatorError("qr has a gradient where it is reduced, of matrices with no more columns than rows")
    inner = matmul(r, dr, transpose_y=True) - matmul(dq, q, transpose_x=True)
    symmetric = tril(inner) + _turned(tril(inner, -1))
    return matmul(dq + matmul(q, symmetric), inverse(r), transpose_y=True)


@composed
def qr(x: Any, mode: str = "reduced", name: Any = None) -> Any:
    """The factors Q and R; with mode 'r', R alone."""
    if mode not in ("reduced", "complete", "r"):
        raise OperatorError(f"qr: mode is 'reduced', 'complete' or 'r', not {mode!r}")
    return qr_factors(x)[1] if mode == "r" else qr_factors(x, mode)


# Singular values


def _infer_svd(x: Spec, *, full_matrices: bool = False) -> tuple[Spec, Spec, Spec]:
    rows, columns = _sizes(x)
    number, stacks = _least(rows, columns), x.shape[:-2]
    left, right = (rows, columns) if full_matrices else (number, number)
    return (
        Spec((*stacks, rows, left), x.dtype),
        Spec((*stacks, number), x.dtype),
        Spec((*stacks, right, columns), x.dtype),
    )


@operator(_infer_svd, outputs=("u", "s", "vh"), prepare=floats, optional_gradients=True)
def svd(x: Any, *, full_matrices: bool = False) -> Any:
    """A matrix with orthogonal columns, singular values, and a matrix with orthogonal rows, whose product is `x`."""
    return through_lapack(lambda m: tuple(np.linalg.svd(m, full_matrices)), x)


@svd.gradient
def _(u: Any, s: Any, vh: Any, du: Any, ds: Any, dvh: Any, full_matrices: bool) -> Any:
    if full_matrices and u.shape[-1] != vh.shape[-2]:
        raise OperatorError("svd has a gradient with full_matrices=False")
    scale, squares = unsqueeze(s, axis=-2), s * s
    inner = diag_embed(s * 0 if ds is None else ds)
    if du is not None:
        inner = inner + _between(squares, matmul(u, du, transpose_x=True)) * scale
    if dvh is not None:
        inner = inner + unsqueeze(s, axis=-1) * _between(squares, matmul(vh, dvh, transpose_y=True))
    whole = matmul(matmul(u, inner), vh)
    if du is not None:  # what of it lies outside the columns of u, and of the rows of vh
        outside = (du - matmul(u, matmul(u, du, transpose_x=True))) / scale
        whole = whole + matmul(outside, vh)
    if dvh is not None:
        outside = (dvh - matmul(matmul(dvh, vh, transpose_y=True), vh)) / unsqueeze(s, axis=-1)
        whole = whole + matmul(u, outside)
    return whole


def _between(values: Any, x: Any) -> Any:
    """`x` less its transpose, each element over the difference of the values of its column and its row."""
    gaps = unsqueeze(values, axis=-2) - unsqueeze(values, axis=-1)
    return where(gaps == 0, 0.0, (x - _turned(x)) / where(gaps == 0, 1.0, gaps))


@composed
def svdvals(x: Any, name: Any = None) -> Any:
    """Singular values, the largest first."""
    return svd(x)[1]


@composed
def matrix_rank(x: Any, tol: Any = None, hermitian: bool = False, name: Any = None) -> Any:
    """How many singular values are more than `tol`, which is at first what rounding makes of zero."""
    values = svdvals(x)
    if tol is None:
        largest = max(values, axis=-1, keepdim=True)
        limit = largest * float(np.finfo(np.dtype(values.dtype)).eps) * float(np.max(x.shape[-2:]))
    else:
        limit = unsqueeze(tol, axis=-1) if hasattr(tol, "dtype") and len(tol.shape) else tol
    return sum(cast(values > limit, dtype="int64"), axis=-1)


@composed
def pinv(x: Any, rcond: Any = 1e-15, hermitian: bool = False, name: Any = None) -> Any:
    """The pseudo-inverse; singular values of no more than `rcond` times the largest count as zero."""
    u, s, vh = svd(x)
    kept = s > max(s, axis=-1, keepdim=True) * rcond
    over = where(kept, 1.0 / where(kept, s, 1.0), 0.0)
    return matmul(_turned(vh) * unsqueeze(over, axis=-2), u, transpose_y=True)


@composed
def lstsq(x: Any, y: Any, rcond: float | None = None, driver: str | None = None, name: Any = None) -> Any:
    """What `x` times it is nearest to `y`, the squared distances, the rank of `x`, and its singular values."""
    eps = float(np.finfo(np.dtype(x.dtype)).eps)
    limit = eps * float(np.max(x.shape[-2:])) if rcond is None else rcond
    solution = matmul(pinv(x, limit), y)
    distances = sum((matmul(x, solution) - y) ** 2, axis=-2)
    return solution, distances, matrix_rank(x), svdvals(x)


# Eigenvalues of symmetric matrices


def _infer_eigen(x: Spec) -> tuple[Spec, Spec]:
    check_square(x)
    return Spec(x.shape[:-1], x.dtype), x


@operator(_infer_eigen, outputs=("values", "vectors"), prepare=floats, optional_gradients=True)
def symmetric_eigen(x: Any) -> Any:
    """The eigenvalues of the symmetric part of a matrix, the smallest first, and eigenvectors as columns."""
    return through_lapack(lambda m: tuple(np.linalg.eigh(_symmetric(m))), x)


@symmetric_eigen.gradient
def _(values: Any, vectors: Any, dvalues: Any, dvectors: Any) -> Any:
    inner = diag_embed(values * 0 if dvalues is None else dvalues)
    if dvectors is not None:
        inner = inner + _between(values, matmul(vectors, dvectors, transpose_x=True)) * 0.5
    return matmul(matmul(vectors, inner), vectors, transpose_y=True)


@composed
def eigh(x: Any, UPLO: str = "L", name: Any = None) -> Any:  # noqa: N803 - Paddle's name
    """The eigenvalues of a symmetric matrix, the smallest first, and its eigenvectors as columns.

    `UPLO` names one of its halves, which are alike.
    """
    if UPLO not in ("L", "U"):
        raise OperatorError(f"eigh: UPLO is 'L' or 'U', not {UPLO!r}")
    return symmetric_eigen(x)


@composed
def eigvalsh(x: Any, UPLO: str = "L", name: Any = None) -> Any:  # noqa: N803 - Paddle's name
    """The eigenvalues of a symmetric matrix, the smallest first."""
    return eigh(x, UPLO)[0]
