"""Functions of linear algebra, of shares and of stacks that are made of operators, each with NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import app

X = np.array([[-1.3, 0.4, 2.1], [0.7, -0.6, 1.9]])
Y = np.array([[0.3, -1.7, 0.8], [1.2, 2.5, -0.9]])
DEEP = np.linspace(-2.0, 2.3, 24).reshape(2, 3, 4)
MATRIX = np.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.4], [0.7, -0.2, 1.1]])
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


MATRIX_CASES: dict[str, Case] = {
    "vector_norm": (lambda x: app.vector_norm(x, 3.0, 1), lambda x: np.linalg.norm(x, 3, 1), [X]),
    "matrix_norm": norms("fro"),
    **{f"matrix_norm {order}": norms(order) for order in (1, -1, np.inf, -np.inf)},
    "matrix_norm of others": norms(1, (2, 0)),
    "matrix_norm kept": norms(np.inf, (0, 1), True),
    "cross": (app.cross, np.cross, [X, Y]),
    "diagflat": (lambda x: app.diagflat(x, 1), lambda x: np.diagflat(x, 1), [X]),
    "diff": (lambda x: app.diff(x, 2, 1), lambda x: np.diff(x, 2, 1), [X]),
    "diff joined": (lambda x, y: app.diff(x, 1, 0, y, y), lambda x, y: np.diff(x, 1, 0, y, y), [X, Y]),
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
}  # fmt: skip
