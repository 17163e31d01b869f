"""The IDX format that MNIST is published in: a magic number, the dimensions, then the bytes; packed by gzip or not.

A header is believed only as far as bytes follow it: a file of a hundred bytes that announces a gigabyte costs an error.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from app.data.unpack import GZIP, read_at_most
from app.errors import DataError, FileError
from app.files import open_file

_UNSIGNED_BYTE = 0x08
# What a packed file may unpack to, at the least and as a multiple of its size: images shrink to a fifth.
_UNPACKED_AT_LEAST = 1 << 26
_UNPACKED_TIMES = 64


def parse(content: NDArray[np.uint8], dimensions: int, name: str) -> NDArray[np.uint8]:
    """Parse an IDX file of unsigned bytes. The array is a view of `content`; `name` is used in errors."""
    beginning = io.BytesIO(content[: 4 + 4 * dimensions].tobytes())
    shape = _header(beginning, dimensions, name)
    after = content[beginning.tell() :]
    _check_length(shape, len(after), name)
    return after.reshape(shape)


def read(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Read an IDX file. The array is writable."""
    name = str(path)
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            stream = gzip.GzipFile(fileobj=file) if packed else file
            shape = _header(stream, dimensions, name)
            announced = math.prod(shape)
            if not packed:
                _check_length(shape, size - file.tell(), name)
            elif announced > max(_UNPACKED_AT_LEAST, _UNPACKED_TIMES * size):
                raise DataError(
                    f"{name} announces {announced:,} bytes packed into {size:,}: no images are packed so small"
                )
            content = read_at_most(stream.read, announced + 1)
    except FileError as error:
        raise DataError(str(error)) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip file is damaged: {error}") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > announced:
        raise DataError(f"{name} goes on after the {announced:,} bytes that its header announces")
    _check_length(shape, len(content), name)
    return np.frombuffer(content, np.uint8).reshape(shape)


def _header(file: BinaryIO | io.BufferedIOBase, dimensions: int, name: str) -> tuple[int, ...]:
    """The shape in the bytes with which an IDX file begins, which are read from it here."""
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


def _check_length(shape: tuple[int, ...], found: int, name: str) -> None:
    """Raise a DataError unless an array of this shape takes the `found` bytes that follow the header."""
    announced = math.prod(shape)  # Python's integers: a header full of ff overflows NumPy's
    if found != announced:
        raise DataError(
            f"{name} announces {_times(shape)} = {announced:,} bytes after its header,"
            f" found {found:,}: it is damaged or was cut off"
        )


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in shape)
