"""What is known of a value before it exists: its shape, in which -1 stands for any size, and its element type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from app.errors import ShapeError
from app.ops.dtype import canonical
from app.ops.size import AnySize, Shape, UndecidedError

UNKNOWN = -1

Axis: TypeAlias = "int | tuple[int, ...] | None"
"""One axis or several, counted from the front or, where negative, from the end; None: all of them."""


class Spec(NamedTuple):
    """Shape and element type of a value."""

    shape: Shape
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


class OpenSize:
    """A size that differs from run to run, as the shape of a Variable has it: it equals -1 and prints so.

    `reshape` and whatever declares a shape take it for -1. There is no number to compute with, to compare or to count
    up to, so this is refused rather than done with -1.
    """

    __slots__ = ("where",)

    def __init__(self, name: str, place: int):
        self.where = name, place
        """The name of the Variable, and which of its axes has the size."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenSize) or other == UNKNOWN

    def __hash__(self) -> int:
        return hash(UNKNOWN)

    def __repr__(self) -> str:
        return str(UNKNOWN)

    def __format__(self, form: str) -> str:
        return format(UNKNOWN, form)

    def _refuse(self, *_: Any) -> Any:
        name, place = self.where
        raise ShapeError(
            f"the size of axis {place} of {name} is open, printed as -1: it is known only when the Program runs, so "
            f"Python cannot compute with it, compare it or count up to it; app.shape({name})[{place}] is a Variable "
            "that can be computed with"
        )

    __int__ = __index__ = __float__ = __bool__ = __neg__ = __pos__ = __abs__ = __round__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse


def plain_sizes(shape: Iterable[Any]) -> tuple[int, ...]:
    """Sizes as whole numbers, -1 for those that are open or None: for code that asks whether a size is -1."""
    return tuple(UNKNOWN if s is None or isinstance(s, OpenSize) else int(s) for s in shape)


def spec_of(value: Any) -> Spec:
    """The Spec of an array, a Tensor or a Variable."""
    return Spec(plain_sizes(value.shape), canonical(value.dtype))


def broadcast(*shapes: Sequence[AnySize]) -> Shape:
    """The shape that NumPy's broadcasting gives; an unknown size yields to a known one above 1."""
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
        raise UndecidedError(f"whether {' and '.join(map(str, wide))} are the same size is known only when it runs")
    return wide.pop() if wide else 1


def may_stretch(shape: Sequence[AnySize], result: Sequence[AnySize], others: Iterable[Sequence[AnySize]]) -> bool:
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


def reduced_axes(axis: Axis | Sequence[int], rank: int) -> tuple[int, ...]:
    """The axes that a reduction removes, counted from the front; None stands for all of them."""
    if axis is None:
        return tuple(range(rank))
    return tuple(sorted({normal_axis(a, rank) for a in ((axis,) if isinstance(axis, int) else axis)}))[:rank]


def count(shape: Sequence[AnySize]) -> AnySize:
    """The number of elements, or -1 where a size is unknown."""
    total: AnySize = 1
    for size in shape:
        if size == UNKNOWN:
            return UNKNOWN
        total *= size
    return total
