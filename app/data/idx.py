"""The IDX format that MNIST is published in: a magic number, the dimensions, then the bytes; packed by gzip or not.

Four such files in a folder of the user's, with MNIST's names, are a data set. This is how Fashion-MNIST is used. Its
bytes are not known in advance, so they are checked for sense, not verified.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.errors import DataError, FileError
from app.files import open_file

GZIP = b"\x1f\x8b"
"""The first bytes of every gzip file, and of no IDX file."""

_PIECE = 1 << 20
# What a packed file may unpack to, at the least and as a multiple of its size: images shrink to a fifth.
_UNPACKED_AT_LEAST = 1 << 26
_UNPACKED_TIMES = 64


def parse(content: NDArray[np.uint8], dimensions: int, name: str) -> NDArray[np.uint8]:
    """Parse an IDX file of unsigned bytes. The array is a view of `content`; `name` is used in errors."""
    length = 4 + 4 * dimensions
    shape = _shape(content[:length].tobytes(), dimensions, name)
    announced, count = math.prod(shape), len(content) - length
    if count != announced:
        times = " x ".join(map(str, shape))
        raise DataError(
            f"{name} announces {times} = {announced:,} bytes after its header, found {count:,}: it is damaged or was "
            "cut off"
        )
    return content[length:].reshape(shape)


def _shape(header: bytes, dimensions: int, name: str) -> tuple[int, ...]:
    """The shape that a header announces: four bytes of magic number, and four for each big-endian dimension."""
    magic = bytes([0, 0, 0x08, dimensions])
    if header[:4] != magic:
        raise DataError(
            f"{name} is not an IDX file of unsigned bytes in {dimensions} dimension(s):"
            f" it should begin with the bytes {magic.hex(' ')}, found {header[:4].hex(' ') or 'nothing'}"
        )
    if len(header) < 4 + 4 * dimensions:
        raise DataError(f"{name} ends inside its header: {4 + 4 * dimensions} bytes expected, found {len(header)}")
    shape = struct.unpack(f">{dimensions}I", header[4:])
    if math.prod(shape) == 0:
        raise DataError(f"{name} is empty: its header announces {' x '.join(map(str, shape))} values")
    return shape


def read(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Read an IDX file, packed or not. The array is writable. Of a packed file no more is unpacked than announced."""
    try:
        with open_file(path) as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            size = os.fstat(file.fileno()).st_size
            stream = gzip.GzipFile(fileobj=file) if packed else file
            header = stream.read(4 + 4 * dimensions)
            announced = math.prod(_shape(header, dimensions, str(path)))
            if packed and announced > max(_UNPACKED_AT_LEAST, _UNPACKED_TIMES * size):
                raise DataError(f"{path} announces {announced:,} bytes compressed to {size:,}: too few for images")
            content = bytearray(header)
            content += read_at_most(stream.read, (announced if packed else min(announced, size)) + 1)
    except FileError as error:
        raise DataError(str(error)) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip file is damaged: {error}") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > len(header) + announced:
        raise DataError(f"{path} goes on after the {announced:,} bytes that its header announces")
    return parse(np.frombuffer(content, np.uint8), dimensions, str(path))


def find(folder: Path, name: str) -> Path:
    """The file in a folder that has a name of MNIST's, packed or not."""
    # Some archives unpack to a dot before "idx".
    names = [spelling + end for spelling in (name, name.replace("-idx", ".idx")) for end in ("", ".gz")]
    for candidate in names:
        if os.path.isfile(folder / candidate):  # unlike a Path's, it never raises
            return folder / candidate
    try:
        file_names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}") from error
    listed = ", ".join(file_names[:10]) + (f" and {len(file_names) - 10} more" if len(file_names) > 10 else "")
    raise DataError(f"{folder} lacks {name}: looked for {', '.join(names)}; found {listed or 'nothing at all'}")


def unpack(packed: bytes, limit: int) -> bytes:
    """Content of a gzip file, cut off one byte after `limit` so that a gzip bomb cannot fill the memory.

    What is not gzip is returned as it is: some servers announce a `.gz` as an encoding of the transfer, and
    the HTTP library has unpacked it already. Whoever asked will see whether it is what was wanted.
    """
    if not packed.startswith(GZIP):
        return packed
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            return bytes(read_at_most(stream.read, limit + 1))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"the gzip file is damaged: {error}") from error


def read_at_most(read: Callable[[int], bytes], limit: int) -> bytearray:
    """Up to `limit` bytes, in pieces: `read(limit)` would allocate them all before it has seen one."""
    content = bytearray()
    while len(content) < limit and (piece := read(min(_PIECE, limit - len(content)))):
        content += piece
    return content
