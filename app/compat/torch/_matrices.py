"""Linear algebra: what `torch.linalg` has, and those of its functions that the module `torch` has too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import app
from app import linalg
from app.compat.torch._printing import returned_text
from app.compat.torch._table import FUNCTIONS, METHODS, renamed


class linalg_slogdet(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: Any
    logabsdet: Any


class linalg_qr(NamedTuple):
    """Two factors of a matrix."""

    Q: Any
    R: Any


class linalg_svd(NamedTuple):
    """Three factors of a matrix."""

    U: Any
    S: Any
    Vh: Any


class linalg_eigh(NamedTuple):
    """The eigenvalues of a matrix, and its eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class linalg_lstsq(NamedTuple):
    """What is nearest to a solution, and what was found on the way."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


for _returned in (linalg_slogdet, linalg_qr, linalg_svd, linalg_eigh, linalg_lstsq):
    _returned.__repr__ = returned_text  # type: ignore[method-assign]


_ROWS = """
cholesky = cholesky(A, upper)
cond = cond(A, p)
cross = cross(input, other:y, dim:axis)
det = det(A)
diagonal = diagonal(A, offset, dim1:axis1, dim2:axis2)
eigvalsh = eigvalsh(A, UPLO)
inv = inv(A)
matmul = matmul(input, other)
matrix_norm = matrix_norm(A, ord:p, dim:axis, keepdim)
matrix_power = matrix_power(A, n)
matrix_rank = matrix_rank(A, tol)
multi_dot = multi_dot(tensors)
pinv = pinv(A, rcond)
solve = solve(A, B:y, left)
svdvals = svdvals(A)
"""

LINALG: dict[str, Callable[..., Any]] = {
    name: renamed(name, target, linalg)
    for name, _, target in (row.partition(" = ") for row in _ROWS.strip().split("\n"))
}
"""The functions of `torch.linalg`."""


def _of_linalg(function: Callable[..., Any]) -> Callable[..., Any]:
    LINALG[function.__name__] = function
    return function


@_of_linalg
def vector_norm(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Any:
    """The size of vectors along axes, or of all elements."""
    return linalg.vector_norm(x, ord, tuple(dim) if isinstance(dim, list) else dim, keepdim)


@_of_linalg
def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    """The size of a vector or, where `ord` is told of two axes, of a matrix; without it, of all elements."""
    of_matrix = ord is not None and (A.ndim == 2 if dim is None else isinstance(dim, (tuple, list)) and len(dim) == 2)
    if of_matrix:
        return linalg.matrix_norm(A, ord, (-2, -1) if dim is None else tuple(dim), keepdim)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim)


@_of_linalg
def slogdet(A: Any) -> linalg_slogdet:
    """The sign of the determinant, and the logarithm of its size."""
    return linalg_slogdet(*app.sign_and_log_of_det(A))


@_of_linalg
def qr(A: Any, mode: str = "reduced") -> linalg_qr:
    """A matrix with orthogonal columns and an upper triangular one, whose product is `A`."""
    return linalg_qr(*linalg.qr(A, mode))


@_of_linalg
def svd(A: Any, full_matrices: bool = True) -> linalg_svd:
    """A matrix with orthogonal columns, singular values, and a matrix with orthogonal rows, whose product is `A`."""
    return linalg_svd(*linalg.svd(A, full_matrices=full_matrices))


@_of_linalg
def eigh(A: Any, UPLO: str = "L") -> linalg_eigh:
    """The eigenvalues of a symmetric matrix, the smallest first, and its eigenvectors as columns."""
    return linalg_eigh(*linalg.eigh(A, UPLO=UPLO))


@_of_linalg
def lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> linalg_lstsq:
    """What `A` times it is nearest to `B`."""
    return linalg_lstsq(*linalg.lstsq(A, B, rcond))


@_of_linalg
def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """What a triangular matrix times it is `B`; not `left`, what it times the matrix is."""
    if left:
        return linalg.triangular_solve(A, B, upper, unitriangular=unitriangular)
    return linalg.triangular_solve(A.mT, B.mT, not upper, unitriangular=unitriangular).mT


_ALSO = {"inverse": "inv", "pinverse": "pinv"} | {
    name: name for name in ("cholesky", "cross", "det", "matrix_power", "qr", "slogdet")
}
for _name, _there in _ALSO.items():
    FUNCTIONS[_name] = METHODS[_name] = LINALG[_there]
FUNCTIONS["logdet"] = METHODS["logdet"] = lambda input: app.log(linalg.det(input))
