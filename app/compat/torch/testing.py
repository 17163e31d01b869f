"""torch.testing"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.tensor import Tensor

_TOLERANCES = {"float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
"""The relative and the absolute tolerance of each floating type."""


def assert_close(
    actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None, equal_nan: bool = False
) -> None:
    """Raise an AssertionError unless two Tensors have one shape, one element type, and equal numbers to rounding."""
    first, second = (np.asarray(getattr(v, "_array", v)) for v in (actual, expected))
    if first.shape != second.shape:
        raise AssertionError(f"The values for attribute 'shape' do not match: {first.shape} != {second.shape}.")
    if isinstance(actual, Tensor) and isinstance(expected, Tensor) and first.dtype != second.dtype:
        raise AssertionError(
            f"The values for attribute 'dtype' do not match: torch.{first.dtype} != torch.{second.dtype}."
        )
    wide = max(_TOLERANCES.get(v.dtype.name, (0.0, 0.0)) for v in (first, second))
    np.testing.assert_allclose(
        first,
        second,
        wide[0] if rtol is None else rtol,
        wide[1] if atol is None else atol,
        equal_nan,
        "Tensor-likes are not close!",
    )
