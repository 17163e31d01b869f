"""What is known of a value before it exists: its shape, in which -1 stands for any size, and its element type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from app.errors import ShapeError
from app.ops.dtype import canonical

UNKNOWN = -1


class Spec(NamedTuple):
    """Shape and element type of a value."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def spec_of(value: Any) -> Spec:
    """The Spec of an array, a Tensor or a Variable."""
    return Spec(tuple(value.shape), canonical(value.dtype))


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that NumPy's broadcasting gives; an unknown size yields to a known one above 1."""
    width = max(map(len, shapes), default=0)
    padded = [(1,) * (width - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(_one_size(sizes, shapes) for sizes in zip(*padded, strict=True))


def _one_size(sizes: tuple[int, ...], shapes: tuple[Sequence[int], ...]) -> int:
    known = {size for size in sizes if size not in (1, UNKNOWN)}
    if len(known) > 1:
        raise ShapeError(f"shapes {' and '.join(str(list(s)) for s in shapes)} cannot be broadcast together")
    if known:
        return known.pop()
    return UNKNOWN if UNKNOWN in sizes else 1


def may_stretch(shape: Sequence[int], result: Sequence[int], others: Iterable[Sequence[int]]) -> bool:
    """Whether broadcasting to `result` can have repeated elements of `shape`, as far as sizes are known.

    Two unknown sizes in one position may turn out to be 1 and n, so they count as a possible stretch.
    """
    if tuple(shape) != tuple(result):
        return True
    for position in range(1, len(shape) + 1):
        unknown_here = shape[-position] == UNKNOWN
        if unknown_here and any(len(o) >= position and o[-position] == UNKNOWN for o in others):
            return True
    return False


def normal_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front, checked against the number of axes."""
    if not -max(rank, 1) <= axis < max(rank, 1):  # as in NumPy, a value without axes takes 0 and -1
        raise ShapeError(f"axis {axis} does not exist in a value with {rank} axes")
    return axis % rank if rank else 0


def reduced_axes(axis: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The axes that a reduction removes, counted from the front; None stands for all of them."""
    if axis is None:
        return tuple(range(rank))
    return tuple(sorted({normal_axis(a, rank) for a in ((axis,) if isinstance(axis, int) else axis)}))[:rank]


def count(shape: Sequence[int]) -> int:
    """The number of elements, or -1 where a size is unknown."""
    total = 1
    for size in shape:
        if size == UNKNOWN:
            return UNKNOWN
        total *= size
    return total
