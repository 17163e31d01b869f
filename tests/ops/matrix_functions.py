"""Functions of linear algebra, of shares and of stacks that are made of operators, each with NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

import app

X = np.array([[-1.3, 0.4, 2.1], [0.7, -0.6, 1.9]])
Y = np.array([[0.3, -1.7, 0.8], [1.2, 2.5, -0.9]])
DEEP = np.linspace(-2.0, 2.3, 24).reshape(2, 3, 4)
MATRIX = np.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.4], [0.7, -0.2, 1.1]])
POSITIVE = MATRIX @ MATRIX.T
GAPS = np.array([[3.0, np.nan, 1.0], [0.5, 2.0, np.nan]])
LOWER = np.linalg.cholesky(POSITIVE)
ROWS = np.array([[0, 1], [1, 2]])

Case = tuple[Callable[..., Any], Callable[..., Any], list[np.ndarray]]


def filled(x: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[:, [0, 2]] = 9.0
    return out


def scattered(values: np.ndarray) -> np.ndarray:
    out = np.zeros((3, 3))
    np.add.at(out, tuple(ROWS.T), values)
    return out


def norms(order: Any, axis: Any = None, keepdim: bool = False) -> Case:
    return (
        lambda x: app.linalg.matrix_norm(x, order, axis or (-2, -1), keepdim),
        lambda x: np.linalg.norm(x, order, axis or (-2, -1), keepdim),
        [DEEP if axis else X],
    )


def shares(q: Any, axis: Any = None, keepdim: bool = False, way: str = "linear") -> Case:
    return (
        lambda x: app.quantile(x, q, axis, keepdim, way),
        lambda x: np.quantile(x, q, axis, keepdims=keepdim, method=way),
        [DEEP**2],
    )


MATRIX_CASES: dict[str, Case] = {
    "slogdet": (app.slogdet, lambda x: np.stack(np.linalg.slogdet(x)), [MATRIX]),
    "solve": (app.solve, np.linalg.solve, [MATRIX, X.T]),
    "solve for a vector": (app.solve, np.linalg.solve, [MATRIX, X[0]]),
    "solve from the right": (lambda x, y: app.solve(x, y, False), lambda x, y: y @ np.linalg.inv(x), [MATRIX, X]),
    "triangular_solve": (app.triangular_solve, linalg.solve_triangular, [MATRIX, X.T]),
    "triangular_solve transposed": (
        lambda x, y: app.triangular_solve(x, y, False, True, True),
        lambda x, y: linalg.solve_triangular(x, y, 1, True, True),
        [MATRIX, X.T],
    ),
    "cholesky_solve": (app.cholesky_solve, lambda x, y: linalg.cho_solve((y, True), x), [X.T, LOWER]),
    "cholesky_solve upper": (
        lambda x, y: app.cholesky_solve(x, y, True),
        lambda x, y: linalg.cho_solve((y, False), x),
        [X.T, LOWER.T],
    ),
    "matrix_power": (lambda x: app.matrix_power(x, 5), lambda x: np.linalg.matrix_power(x, 5), [MATRIX]),
    "matrix_power below zero": (
        lambda x: app.matrix_power(x, -2),
        lambda x: np.linalg.matrix_power(x, -2),
        [MATRIX],
    ),
    "matrix_power of zero": (lambda x: app.matrix_power(x, 0), lambda x: np.eye(3), [MATRIX]),
    "multi_dot": (lambda x, y, z: app.multi_dot([x, y, z, x]), lambda x, y, z: x @ y @ z @ x, [X, MATRIX, Y.T]),
    "cholesky upper": (
        lambda x: app.cholesky(x @ x.T, True),
        lambda x: np.linalg.cholesky(x @ x.T).T,
        [MATRIX],
    ),
    "cholesky": (lambda x: app.cholesky(x @ x.T), lambda x: np.linalg.cholesky(x @ x.T), [MATRIX]),
    "eigvalsh": (lambda x: app.eigvalsh(x + x.T), lambda x: np.linalg.eigvalsh(x + x.T), [MATRIX]),
    "eigh": (
        lambda x: app.abs(app.linalg.eigh(x + x.T)[1]),
        lambda x: np.abs(np.linalg.eigh(x + x.T)[1]),
        [MATRIX],
    ),
    "qr": (lambda x: app.qr(x, "r"), lambda x: np.linalg.qr(x, "r"), [X.T]),
    "svdvals": (app.svdvals, lambda x: np.linalg.svd(x, compute_uv=False), [X]),
    "pinv": (app.pinv, np.linalg.pinv, [X]),
    "lstsq": (lambda x, y: app.lstsq(x, y)[0], lambda x, y: np.linalg.lstsq(x, y)[0], [X.T, MATRIX]),
    "vector_norm": (lambda x: app.vector_norm(x, 3.0, 1), lambda x: np.linalg.norm(x, 3, 1), [X]),
    "matrix_norm": norms("fro"),
    **{f"matrix_norm {order}": norms(order) for order in ("nuc", 1, -1, 2, -2, np.inf, -np.inf)},
    "matrix_norm of others": norms(1, (2, 0)),
    "matrix_norm kept": norms(np.inf, (0, 1), True),
    "norm of matrices": (lambda x: app.norm(x, 2, [0, 1]), lambda x: np.linalg.norm(x, 2), [X]),
    "cross": (app.cross, np.cross, [X, Y]),
    "diagflat": (lambda x: app.diagflat(x, 1), lambda x: np.diagflat(x, 1), [X]),
    "cov": (app.cov, np.cov, [X]),
    "cov of columns": (lambda x: app.cov(x, False, False), lambda x: np.cov(x, rowvar=False, ddof=0), [X]),
    "cov by weights": (
        lambda x: app.cov(x, aweights=np.array([0.5, 1.0, 2.0]), fweights=np.array([1, 2, 1])),
        lambda x: np.cov(x, aweights=[0.5, 1.0, 2.0], fweights=[1, 2, 1]),
        [X],
    ),
    "corrcoef": (app.corrcoef, np.corrcoef, [X]),
    "diff": (lambda x: app.diff(x, 2, 1), lambda x: np.diff(x, 2, 1), [X]),
    "diff joined": (lambda x, y: app.diff(x, 1, 0, y, y), lambda x, y: np.diff(x, 1, 0, y, y), [X, Y]),
    "quantile": shares(0.3),
    "quantile of several": shares([0.1, 0.5, 1.0], 1),
    "quantile of axes": shares(0.45, (0, 2), True),
    **{f"quantile {way}": shares(0.4, 1, way=way) for way in ("lower", "higher", "midpoint", "nearest")},
    "logaddexp": (app.logaddexp, np.logaddexp, [X, Y]),
    "hypot": (app.hypot, np.hypot, [X, Y]),
    "atleast_1d": (lambda x: app.atleast_1d(x[0, 0]), lambda x: np.atleast_1d(x[0, 0]), [X]),
    "atleast_2d": (lambda x: app.atleast_2d(x[0]), lambda x: np.atleast_2d(x[0]), [X]),
    "atleast_3d": (lambda x: app.atleast_3d(x), np.atleast_3d, [X]),
    "atleast_3d of a row": (lambda x: app.atleast_3d(x[0]), lambda x: np.atleast_3d(x[0]), [X]),
    "dstack": (lambda x, y: app.dstack([x, y]), lambda x, y: np.dstack([x, y]), [X, Y]),
    "column_stack": (lambda x, y: app.column_stack([x[:, 0], y]), lambda x, y: np.column_stack([x[:, 0], y]), [X, Y]),
    "tensor_split": (lambda x: app.tensor_split(x, 3, 2)[0], lambda x: np.array_split(x, 3, 2)[0], [DEEP]),
    "tensor_split at": (lambda x: app.tensor_split(x, [1, 3], 2)[1], lambda x: np.split(x, [1, 3], 2)[1], [DEEP]),
    "hsplit": (lambda x: app.hsplit(x, 3)[1], lambda x: np.hsplit(x, 3)[1], [X]),
    "vsplit": (lambda x: app.vsplit(x, 2)[1], lambda x: np.vsplit(x, 2)[1], [X]),
    "dsplit": (lambda x: app.dsplit(x, 2)[1], lambda x: np.dsplit(x, 2)[1], [DEEP]),
    "index_fill": (lambda x: app.index_fill(x, np.array([0, 2]), 1, 9.0), filled, [X]),
    "scatter_nd": (lambda x: app.scatter_nd(ROWS, x, [3, 3]), scattered, [X[0, :2]]),
    "scatter_nd rows": (
        lambda x: app.scatter_nd(np.array([[2], [2]]), x, [3, 3]),
        lambda x: np.stack([x[0] * 0, x[0] * 0, x.sum(0)]),
        [X],
    ),
    "nanquantile": (lambda x: app.nanquantile(x, 0.4, 1), lambda x: np.nanquantile(x, 0.4, 1), [GAPS]),
    "nanmedian": (lambda x: app.nanmedian(x, 0), lambda x: np.nanmedian(x, 0), [GAPS]),
    "quantile of what is not a number": (lambda x: app.quantile(x, 0.4, 0), lambda x: np.quantile(x, 0.4, 0), [GAPS]),
}  # fmt: skip
"""Those with a gradient."""

MATRIX_FIGURES: dict[str, Case] = {
    "matrix_rank": (app.matrix_rank, np.linalg.matrix_rank, [X[:, :1] @ X[:1]]),
    "matrix_rank told": (lambda x: app.matrix_rank(x, 1.9), lambda x: np.linalg.matrix_rank(x, 1.9), [X]),
    "heaviside": (lambda x: app.heaviside(x, 0.5), lambda x: np.heaviside(x, 0.5), [np.array([-1.0, 0.0, 2.0])]),
    "condition": (app.linalg.cond, np.linalg.cond, [MATRIX]),
    "condition by columns": (lambda x: app.linalg.cond(x, 1), lambda x: np.linalg.cond(x, 1), [MATRIX]),
}
"""Those without one, and those that have names of their own below."""
