"""`torch.Size`: the shape of a Tensor, a tuple that prints its name."""

from __future__ import annotations

from typing import Any

from app.errors import ShapeError
from app.ops.spec import normal_axis


class Size(tuple[int, ...]):
    """A shape."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> int:
        """How many elements the shape has."""
        total = 1
        for size in self:
            total *= size
        return total

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> Any:
        return Size((*self, *other))


def sizes(given: tuple[Any, ...]) -> tuple[int, ...]:
    """The sizes of a call like `zeros(2, 3)`, `zeros((2, 3))` or `zeros([2, 3])`."""
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = tuple(given[0])
    return tuple(int(size) for size in given)


def along(value: Any, dim: int, place: Any) -> tuple[Any, ...]:
    """The index that selects a place of one axis."""
    if not value.ndim:
        raise ShapeError("a Tensor without axes has no part along an axis")
    return (*[slice(None)] * normal_axis(dim, value.ndim), place)
