"""Element types, shapes and devices, which print as in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import app
from app.ops import dtype as types


class dtype(str):
    """An element type: a string, the framework's name for it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.{str.__str__(self)}"

    __str__ = __repr__

    @property
    def is_floating_point(self) -> bool:
        return types.is_float(self)


DTYPES = {name: dtype(name) for name in types.NAMES}
"""The element types by the framework's names."""
ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}
"""PyTorch's other names of element types. `int` is 32 bits wide there."""
NAMED = {**DTYPES, **{alias: DTYPES[name] for alias, name in ALIASES.items()}}


def named(spelling: Any) -> dtype:
    """The element type of a name, a NumPy type or a Python type; `float` is 64 bits wide in PyTorch."""
    return DTYPES["float64" if spelling is float else types.canonical(spelling)]


def get_default_dtype() -> dtype:
    """The floating-point type of new Tensors."""
    return named(types.get_default_dtype())


def set_default_dtype(d: Any) -> None:
    """Set the floating-point type of new Tensors."""
    types.set_default_dtype(d)


class device(str):
    """A device: the CPU. Another one is an error."""

    __slots__ = ()

    def __new__(cls, type: Any = "cpu") -> device:
        app.device.set_device(type)
        return super().__new__(cls, "cpu")

    def __repr__(self) -> str:
        return "device(type='cpu')"

    @property
    def type(self) -> str:
        return "cpu"


CPU = device()


def set_default_device(device: Any) -> None:
    """Set the device of new Tensors; only the CPU is accepted."""
    app.device.set_device(device)


def check_device(device: Any) -> None:
    """Raise an error for another device than the CPU; None is the default one."""
    if device is not None:
        app.device.set_device(device)


class Size(tuple[int, ...]):
    """A shape."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> int:
        """The number of elements."""
        total = 1
        for size in self:
            total *= size
        return total


def sizes(numbers: Sequence[Any]) -> list[int]:
    """The sizes of a call like `zeros(2, 3)` or `zeros((2, 3))`."""
    if len(numbers) == 1 and isinstance(numbers[0], (list, tuple)):
        numbers = numbers[0]
    return [int(size) for size in numbers]
