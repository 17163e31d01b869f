"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import app
from app.compat.torch._table import FUNCTIONS, register, rows
from app.errors import ShapeError
from app.ops.composed import check_ranks

rows(
    """
    addmm = addmm(input, mat1:x, mat2:y, *, beta, alpha)
    bmm = bmm(input, mat2:y)
    dist = dist(input, other:y, p)
    inner = inner(input, other:y)
    matmul = matmul(input, other)
    mv = mv(input, vec)
    """
)


def _of_ranks(*ranks: int) -> Callable[..., Any]:
    """Lets a function take values with these numbers of axes only."""

    def decorate(function: Any) -> Any:
        names = list(function.__signature__.parameters)

        @wraps(function)
        def checked(*args: Any, **settings: Any) -> Any:
            values = [*args, *(settings[name] for name in names[len(args) :] if name in settings)]
            check_ranks(function.__name__, *zip(ranks, values, strict=False))
            return function(*args, **settings)

        return checked

    return decorate


rows("mm = matmul(input, mat2)", check=_of_ranks(2, 2))
rows(
    """
    dot vdot = dot(input, tensor:y)
    outer ger = outer(input, vec2:y)
    """,
    check=_of_ranks(1, 1),
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
