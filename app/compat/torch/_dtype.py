"""Element types such as `torch.float32`: the framework's names for them, which print as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from app import limits
from app.ops import dtype as types


class dtype(str):
    """An element type: a string, the framework's name for it, which prints as in PyTorch."""

    def __repr__(self) -> str:
        return f"torch.{str.__str__(self)}"

    __str__ = __repr__

    @property
    def is_floating_point(self) -> bool:
        return types.is_float(self)

    @property
    def is_complex(self) -> bool:
        return False

    @property
    def is_signed(self) -> bool:
        return np.dtype(self).kind in "if"

    @property
    def itemsize(self) -> int:
        return np.dtype(self).itemsize

    def __reduce__(self) -> Any:
        return named, (str.__str__(self),)


DTYPES = {name: dtype(name) for name in types.NAMES}
"""Every element type by the framework's name."""

ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}
"""PyTorch's other names for them. `int` is 32 bits wide there."""

NAMED = {**DTYPES, **{alias: DTYPES[name] for alias, name in ALIASES.items()}}


def named(spelling: Any) -> dtype:
    """The element type that a name, a NumPy type or a Python type stands for; `float` is 64 bits wide in PyTorch."""
    return DTYPES["float64" if spelling is float else types.canonical(spelling)]


def get_default_dtype() -> dtype:
    """The default floating type of new Tensors."""
    return named(types.get_default_dtype())


def set_default_dtype(d: Any) -> None:
    """Set the default floating type of new Tensors."""
    types.set_default_dtype(d)


class finfo(limits.finfo):
    """The limits of a floating type."""

    def __init__(self, type: Any = None):
        super().__init__(type or get_default_dtype())

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(limits.iinfo):
    """The limits of a type of whole numbers."""

    def __init__(self, type: Any):
        super().__init__(type)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
