"""Linear algebra: products and norms."""

from typing import NoReturn

from app.ops.gone import without
from app.ops.linear import matmul
from app.ops.norms import matrix_norm, norm, vector_norm

__all__ = ["matmul", "matrix_norm", "norm", "vector_norm"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(without(__name__, name))
