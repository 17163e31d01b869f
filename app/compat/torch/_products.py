"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import app
from app.compat.torch._table import FUNCTIONS, register, rows
from app.errors import ShapeError

rows(
    """
    addmm = addmm(input, mat1:x, mat2:y, *, beta, alpha)
    bmm = bmm(input, mat2:y)
    dist = dist(input, other:y, p)
    dot vdot = dot(input, tensor:y)
    inner = inner(input, other:y)
    matmul mm = matmul(input, other)
    mv = mv(input, vec)
    outer ger = outer(input, vec2:y)
    """
)

FUNCTIONS["einsum"] = lambda equation, *operands: app.einsum(equation, *operands)


@register()
def trace(input: Any) -> Any:
    """The sum of a matrix's diagonal."""
    if input.ndim != 2:
        raise ShapeError(f"trace needs a matrix, found shape {list(input.shape)}")
    return app.trace(input)


@register()
def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether two Tensors are equal to rounding."""
    return bool(app.allclose(input, other, rtol, atol, equal_nan))


@register()
def equal(input: Any, other: Any) -> bool:
    """Whether two Tensors have one shape and the same elements."""
    return tuple(input.shape) == tuple(other.shape) and bool(app.all(app.equal(input, other)))
