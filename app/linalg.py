"""Linear algebra: products and norms."""

from app.ops.linear import matmul
from app.ops.norms import matrix_norm, norm, vector_norm

__all__ = ["matmul", "matrix_norm", "norm", "vector_norm"]


def __dir__() -> list[str]:
    return __all__
