"""The windows that convolution and pooling slide over images: their number, and the elements of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from types import EllipsisType
from typing import Literal, TypeGuard

from app.errors import DtypeError, ShapeError
from app.ops.size import AnySize, Shape, quotient, smaller
from app.ops.spec import UNKNOWN, Spec

Pair = tuple[int, int]
Padding = tuple[Pair, Pair] | Literal["same"]
"""The padding before and after the rows and the columns.

"same" pads for as many windows as rows and columns, divided by the stride and rounded up.
"""
Tap = tuple[slice, slice]
"""For one offset in the windows: the windows whose element there is not padding, and these elements."""
Index = tuple[EllipsisType, slice, slice]
"""Rows and columns of arrays of images."""


def check_images(x: Spec) -> None:
    """Raise an error if a value does not have the four axes of images."""
    if len(x.shape) != 4:
        raise ShapeError(f"expected images of shape [images, channels, height, width], found shape {list(x.shape)}")


def check_like(value: Spec, expected: Spec, of: str) -> None:
    """Raise an error if a value does not have the type and the shape of `of`, as far as sizes are known."""
    if value.dtype != expected.dtype:
        raise DtypeError(f"expected values of one type, found {value.dtype} and {expected.dtype}")
    alike = [a == b or UNKNOWN in (a, b) for a, b in zip(value.shape, expected.shape, strict=False)]
    if len(value.shape) != len(expected.shape) or not all(alike):
        raise ShapeError(f"expected the shape {list(expected.shape)} of {of}, found {list(value.shape)}")


def check_pair(name: str, sizes: object) -> None:
    """Raise an error unless `sizes` are two integers above 0, for the height and the width."""
    if not _are_whole(sizes) or min(sizes) < 1:
        raise ShapeError(f"{name} must be two integers above 0, found {sizes!r}")


def check_windows(stride: Pair, padding: Padding, dilation: Pair = (1, 1)) -> None:
    """Raise an error if the settings are invalid."""
    check_pair("stride", stride)
    check_pair("dilation", dilation)
    if padding == "same":
        return
    if isinstance(padding, str) or len(padding) != 2 or not all(map(_are_whole, padding)):
        raise ShapeError(f'padding must be "same" or ((top, bottom), (left, right)), found {padding!r}')
    if min(min(pair) for pair in padding) < 0:
        raise ShapeError(f"padding must not be negative, found {padding!r}")


def _are_whole(sizes: object) -> TypeGuard[Pair]:
    return isinstance(sizes, (tuple, list)) and len(sizes) == 2 and all(type(size) is int for size in sizes)


def padding_along(
    padding: Padding, axis: int, size: int, kernel: int, stride: int, dilation: int = 1
) -> tuple[int, int]:
    """The padding before and after an axis; an odd padding of "same" has one more after."""
    if padding != "same":
        before, after = padding[axis]
        return before, after
    total = max((-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
    return total // 2, total - total // 2


def window_count(
    size: AnySize,
    kernel: AnySize,
    stride: int,
    padding: tuple[int, int] | Literal["same"],
    dilation: int = 1,
    ceil_mode: bool = False,
) -> AnySize:
    """The number of windows along an axis; -1 if the size is unknown.

    With `ceil_mode`, the last window may extend beyond the end, but it must begin before the end.
    """
    if size == UNKNOWN or (kernel == UNKNOWN and padding != "same"):
        return UNKNOWN
    if padding == "same":
        return quotient(size + (stride - 1), stride)
    reach = dilation * (kernel - 1) + 1
    room = size + (sum(padding) - reach)
    if isinstance(room, int) and room < 0:
        raise ShapeError(
            f"a window over {reach} elements does not fit into an axis of {size}"
            + (f" with {padding[0]} + {padding[1]} of padding" if any(padding) else "")
        )
    count = quotient(room, stride) + 1
    if not ceil_mode or stride == 1:
        return count
    more = quotient(room + (stride - 1), stride) + 1
    that_begin = quotient(size + (padding[0] - 1), stride) + 1
    return smaller(more, that_begin)


def counts_of(
    shape: Shape, kernel: Shape, stride: Pair, padding: Padding, dilation: Pair = (1, 1), ceil_mode: bool = False
) -> Shape:
    """The numbers of windows along the height and the width of images."""
    return tuple(
        window_count(
            shape[2 + a],
            kernel[a],
            stride[a],
            "same" if padding == "same" else padding[a],
            dilation[a],
            ceil_mode,
        )
        for a in (0, 1)
    )


def taps_along(size: int, count: int, kernel: int, stride: int, before: int, dilation: int = 1) -> list[Tap]:
    """The taps of an axis, one for each offset in a window."""
    taps = []
    for offset in range(kernel):
        shift = offset * dilation - before  # the element of window i is i * stride + shift
        first = max(-(shift // stride), 0)
        last = min((size - 1 - shift) // stride, count - 1)
        if last < first:
            taps.append((slice(0, 0), slice(0, 0)))
        else:
            taps.append(
                (slice(first, last + 1), slice(first * stride + shift, last * stride + shift + 1, stride)),
            )
    return taps


def across(rows: Sequence[Tap], columns: Sequence[Tap]) -> Iterator[tuple[Index, Index]]:
    """The taps of both axes combined, row by row, as indices of arrays of windows and of images."""
    for (outer, inner), (outer_columns, inner_columns) in product(rows, columns):
        yield (..., outer, outer_columns), (..., inner, inner_columns)
