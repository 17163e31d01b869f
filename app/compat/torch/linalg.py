"""torch.linalg"""

from __future__ import annotations

from typing import Any

import app
from app.compat.missing import missing


def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    """The norm over axes: at first the square root of the sum of squares."""
    return app.norm(A, 2 if ord is None else ord, dim, keepdim)


vector_norm = norm

__all__ = ["norm", "vector_norm"]

__getattr__ = missing(__name__)
