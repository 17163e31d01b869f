"""The IDX format that MNIST is published in: a magic number, the dimensions, then the bytes."""

from __future__ import annotations

import io
import math
import struct
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from app.errors import DataError

_UNSIGNED_BYTE = 0x08


def parse(content: NDArray[np.uint8], dimensions: int, name: str) -> NDArray[np.uint8]:
    """The array that an IDX file of unsigned bytes holds: a view of `content`. `name` is for the errors."""
    beginning = io.BytesIO(content[: 4 + 4 * dimensions].tobytes())
    shape = read_header(beginning, dimensions, name)
    after = content[beginning.tell() :]
    check_length(shape, len(after), name)
    return after.reshape(shape)


def read_header(file: BinaryIO | io.BufferedIOBase, dimensions: int, name: str) -> tuple[int, ...]:
    """The shape that is announced in the bytes with which an IDX file begins, and that are read from it here."""
    magic = bytes([0, 0, _UNSIGNED_BYTE, dimensions])
    length = 4 + 4 * dimensions  # each dimension is a big-endian 32-bit number
    found = file.read(length)
    if found[:4] != magic:
        raise DataError(
            f"{name} is not an IDX file of unsigned bytes in {dimensions} dimension(s):"
            f" it should begin with the bytes {magic.hex(' ')}, found {found[:4].hex(' ') or 'nothing'}"
        )
    if len(found) < length:
        raise DataError(f"{name} ends inside its header: {length} bytes expected, found {len(found)}")
    shape = struct.unpack(f">{dimensions}I", found[4:])
    if math.prod(shape) == 0:
        raise DataError(f"{name} is empty: its header announces {_times(shape)} values")
    return shape


def check_length(shape: tuple[int, ...], found: int, name: str) -> None:
    """Raise a DataError unless an array of this shape takes the `found` bytes that follow the header."""
    announced = math.prod(shape)  # Python's integers: a header full of ff overflows NumPy's
    if found != announced:
        raise DataError(
            f"{name} announces {_times(shape)} = {announced:,} bytes after its header,"
            f" found {found:,}: it is damaged or was cut off"
        )


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in shape)
