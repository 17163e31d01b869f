"""The Spec of a value: its element type and its shape, in which -1 is an unknown size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

from app.errors import ShapeError
from app.ops.dtype import canonical
from app.ops.size import AnySize, Shape, UndecidedError

UNKNOWN = -1

Axis: TypeAlias = "int | tuple[int, ...] | None"
"""One axis or several; negative axes count from the end, and None stands for all axes."""


class Spec(NamedTuple):
    """Shape and element type of a value."""

    shape: Shape
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


class OpenSize:
    """An unknown size in the shape of a Variable. It equals -1 and is printed as -1.

    `reshape` and functions that declare a shape treat it as -1. Arithmetic, order comparisons and `range` raise an
    error, because they would silently use the number -1.
    """

    __slots__ = ("where",)

    def __init__(self, name: str, place: int):
        self.where = name, place
        """The name of the Variable, and the axis that has this size."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenSize) or other == UNKNOWN

    def __hash__(self) -> int:
        return hash(UNKNOWN)

    def __repr__(self) -> str:
        return str(UNKNOWN)

    def __format__(self, form: str) -> str:
        return format(UNKNOWN, form)

    def _refuse(self, *_: object) -> NoReturn:
        raise self._refusal()

    def _refusal(self) -> ShapeError:
        name, place = self.where
        return ShapeError(
            f"the size of axis {place} of {name} (printed as -1) is known only when the Program runs, so Python cannot "
            f"compute with it, compare it or use it in range(); use opsmith.shape({name})[{place}], which is a Variable"
        )

    __int__ = __index__ = __float__ = __bool__ = __neg__ = __pos__ = __abs__ = __round__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse


def plain_sizes(shape: Iterable[Any]) -> tuple[int, ...]:
    """Sizes as integers, with -1 for open sizes and for None."""
    return tuple(UNKNOWN if s is None or isinstance(s, OpenSize) else int(s) for s in shape)


def spec_of(value: Any) -> Spec:
    """The Spec of an array, a Tensor or a Variable."""
    return Spec(plain_sizes(value.shape), canonical(value.dtype))


def broadcast(*shapes: Sequence[AnySize]) -> Shape:
    """The broadcast shape, as in NumPy; a known size above 1 takes precedence over an unknown one."""
    width = max(map(len, shapes), default=0)
    padded = [(1,) * (width - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(_one_size(sizes, shapes) for sizes in zip(*padded, strict=True))


def _one_size(sizes: Shape, shapes: tuple[Sequence[AnySize], ...]) -> AnySize:
    wide = {size for size in sizes if size not in (1, UNKNOWN)}
    numbers = {size for size in wide if isinstance(size, int)}
    if len(numbers) > 1:
        raise ShapeError(f"shapes {' and '.join(str(list(s)) for s in shapes)} cannot be broadcast together")
    if numbers:
        return numbers.pop()
    if UNKNOWN in sizes:
        return UNKNOWN
    if len(wide) > 1:
        raise UndecidedError(f"whether {' and '.join(map(str, wide))} are the same size is known only at run time")
    return wide.pop() if wide else 1


def stretched(*shapes: Sequence[AnySize]) -> list[Shape]:
    """Shapes of which only the axes are known that broadcasting would stretch: their size is 1, any other -1."""
    result: list[Shape] = []
    for shape in shapes:
        sizes = [UNKNOWN] * len(shape)
        for place in range(1, len(shape) + 1):
            if shape[-place] == 1 and any(len(other) >= place and other[-place] != 1 for other in shapes):
                sizes[-place] = 1
        result.append(tuple(sizes))
    return result


def may_broadcast(shape: Sequence[AnySize], result: Sequence[AnySize], others: Iterable[Sequence[AnySize]]) -> bool:
    """Whether broadcasting from `shape` to `result` may repeat elements, as far as sizes are known.

    Two unknown sizes in one position may be 1 and n at run time, so the answer for them is True.
    """
    if tuple(shape) != tuple(result):
        return True
    for position in range(1, len(shape) + 1):
        unknown_here = shape[-position] == UNKNOWN
        if unknown_here and any(len(o) >= position and o[-position] == UNKNOWN for o in others):
            return True
    return False


def normal_axis(axis: int, rank: int) -> int:
    """`axis` as a non-negative number; a ShapeError if the value has no such axis."""
    if not -max(rank, 1) <= axis < max(rank, 1):  # as in NumPy, axes 0 and -1 are valid for a scalar
        raise ShapeError(f"axis {axis} does not exist in a value with {rank} axes")
    return axis % rank if rank else 0


def differ(shape: Sequence[AnySize], other: Sequence[AnySize]) -> bool:
    """Whether two shapes cannot be the same, whatever their unknown sizes are."""
    return len(shape) != len(other) or any(a != b and UNKNOWN not in (a, b) for a, b in zip(shape, other, strict=True))


def reduced_axes(axis: Axis | Sequence[int], rank: int) -> tuple[int, ...]:
    """The axes of a reduction as sorted non-negative numbers; None stands for all axes."""
    if axis is None:
        return tuple(range(rank))
    return tuple(sorted({normal_axis(a, rank) for a in ((axis,) if isinstance(axis, int) else axis)}))[:rank]


def count(shape: Sequence[AnySize]) -> AnySize:
    """The number of elements, or -1 if a size is unknown."""
    total: AnySize = 1
    for size in shape:
        if size == UNKNOWN:
            return UNKNOWN
        total *= size
    return total
