"""Linear algebra: products, inverses, factors and sizes of matrices."""

from app.ops.factoring import cholesky, eigh, eigvalsh, lstsq, matrix_rank, pinv, qr, svd, svdvals
from app.ops.linear import matmul
from app.ops.matrix import cross, diagonal
from app.ops.norms import cond, matrix_norm, norm, vector_norm
from app.ops.solving import cholesky_solve, det, matrix_power, multi_dot, slogdet, solve, triangular_solve
from app.ops.solving import inverse as inv
from app.ops.statistics import corrcoef, cov

__all__ = [
    "cholesky",
    "cholesky_solve",
    "cond",
    "corrcoef",
    "cov",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "triangular_solve",
    "vector_norm",
]
