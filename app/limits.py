"""`iinfo` and `finfo`: the limits of element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import DtypeError
from app.ops.dtype import INTEGERS, canonical, is_float


class iinfo:  # noqa: N801 - Paddle's name
    """The limits of an integer type."""

    def __init__(self, dtype: Any):
        name = np.dtype(canonical(dtype)).name
        if name not in INTEGERS:
            raise DtypeError(f"iinfo expects an integer type, found {name}; use finfo")
        limits = np.iinfo(name)
        self.dtype, self.bits = name, limits.bits
        self.min, self.max = int(limits.min), int(limits.max)

    def __repr__(self) -> str:
        return f"paddle.iinfo(min={self.min}, max={self.max}, bits={self.bits}, dtype={self.dtype})"


class finfo:  # noqa: N801 - Paddle's name
    """The limits of a floating type."""

    def __init__(self, dtype: Any):
        name = np.dtype(canonical(dtype)).name
        if not is_float(name):
            raise DtypeError(f"finfo expects a floating type, found {name}; use iinfo")
        limits = np.finfo(name)
        self.dtype, self.bits = name, limits.bits
        self.min, self.max = float(limits.min), float(limits.max)
        self.eps, self.resolution = float(limits.eps), float(limits.resolution)
        self.tiny = self.smallest_normal = float(limits.tiny)

    def __repr__(self) -> str:
        return (
            f"paddle.finfo(min={self.min:g}, max={self.max:g}, eps={self.eps:g}, resolution={self.resolution:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, bits={self.bits}, dtype={self.dtype})"
        )
