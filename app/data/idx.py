"""The IDX format that MNIST is published in: a magic number, the dimensions, then the bytes."""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

from app.errors import DataError

_UNSIGNED_BYTE = 0x08


def parse(content: NDArray[np.uint8], dimensions: int, name: str) -> NDArray[np.uint8]:
    """The array that an IDX file of unsigned bytes holds: a view of `content`. `name` is for the errors."""
    magic = bytes([0, 0, _UNSIGNED_BYTE, dimensions])
    header = 4 + 4 * dimensions  # each dimension is a big-endian 32-bit number
    found = content[:header].tobytes()
    if found[:4] != magic:
        raise DataError(
            f"{name} is not an IDX file of unsigned bytes in {dimensions} dimension(s):"
            f" it should begin with the bytes {magic.hex(' ')}, found {found[:4].hex(' ') or 'nothing'}"
        )
    if len(found) < header:
        raise DataError(f"{name} ends inside its header: {header} bytes expected, found {len(found)}")
    shape = struct.unpack(f">{dimensions}I", found[4:])
    announced = math.prod(shape)  # Python's integers: a header full of ff overflows NumPy's
    if announced == 0:
        raise DataError(f"{name} is empty: its header announces {_times(shape)} values")
    if len(content) - header != announced:
        raise DataError(
            f"{name} announces {_times(shape)} = {announced:,} bytes after its header,"
            f" found {len(content) - header:,}: it is damaged or was cut off"
        )
    return content[header:].reshape(shape)


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in shape)
