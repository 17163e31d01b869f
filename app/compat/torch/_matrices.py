"""Linear algebra: the functions of `torch.linalg`, some of which are also in `torch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app import linalg
from app.compat.table import table

LINALG: dict[str, Callable[..., Any]] = table(
    linalg,
    """
    matmul = matmul(input, other)
    matrix_norm = matrix_norm(A, ord:p, dim:axis, keepdim)
    """,
    out=True,
)
"""The functions of `torch.linalg`."""


def _of_linalg(function: Callable[..., Any]) -> Callable[..., Any]:
    LINALG[function.__name__] = function
    return function


@_of_linalg
def vector_norm(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Any:
    """The norm of vectors along axes, or of all elements."""
    return linalg.vector_norm(x, ord, tuple(dim) if isinstance(dim, list) else dim, keepdim)


@_of_linalg
def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    """The norm of a vector, or of a matrix if `ord` and two axes are given; without `ord`, of all elements."""
    of_matrix = ord is not None and (A.ndim == 2 if dim is None else isinstance(dim, (tuple, list)) and len(dim) == 2)
    if of_matrix:
        return linalg.matrix_norm(A, ord, (-2, -1) if dim is None else tuple(dim), keepdim)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim)
