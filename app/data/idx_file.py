"""Reading an IDX file that nobody knows in advance, packed by gzip or not: it gets the memory that it is worth.

Its header is believed when the length of what follows bears it out, and not before: a file of a hundred bytes that
announces a gigabyte costs nothing but an error.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from app.data import idx
from app.data.unpack import GZIP
from app.errors import DataError, FileError
from app.files import open_file

_PIECE = 1 << 18
# What a packed file may unpack to, at the least and as a multiple of its size: images shrink to a fifth.
_UNPACKED_AT_LEAST = 1 << 26
_UNPACKED_TIMES = 64


def read(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array in the IDX file at `path`, which may be written to."""
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            return (_read_packed if packed else _read_plain)(file, size, dimensions, str(path))
    except FileError as error:
        raise DataError(str(error)) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip file is damaged: {error}") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _read_plain(file: BinaryIO, size: int, dimensions: int, name: str) -> NDArray[np.uint8]:
    shape = idx.read_header(file, dimensions, name)
    idx.check_length(shape, size - file.tell(), name)
    return _filled(file, shape, name)


def _read_packed(file: BinaryIO, size: int, dimensions: int, name: str) -> NDArray[np.uint8]:
    """Unpacked twice: once to see how much it is, and, if that is what was announced, once more to keep it."""
    limit = max(_UNPACKED_AT_LEAST, _UNPACKED_TIMES * size)
    with gzip.GzipFile(fileobj=file) as stream:
        shape = idx.read_header(stream, dimensions, name)
        announced = math.prod(shape)
        if announced > limit:
            raise DataError(f"{name} announces {announced:,} bytes packed into {size:,}: no images are packed so small")
        found = 0
        for piece in _pieces(stream):
            found += len(piece)
            if found > announced:
                raise DataError(f"{name} goes on after the {announced:,} bytes that its header announces")
        idx.check_length(shape, found, name)
    file.seek(0)
    with gzip.GzipFile(fileobj=file) as stream:
        idx.read_header(stream, dimensions, name)
        return _filled(stream, shape, name)


def _pieces(stream: BinaryIO | io.BufferedIOBase) -> Iterator[bytes]:
    while piece := stream.read(_PIECE):
        yield piece


def _filled(stream: BinaryIO | io.BufferedIOBase, shape: tuple[int, ...], name: str) -> NDArray[np.uint8]:
    content = np.empty(math.prod(shape), np.uint8)
    found = 0
    for piece in _pieces(stream):
        content[found : found + len(piece)] = np.frombuffer(piece, np.uint8)[: len(content) - found]
        found += len(piece)
        if found > len(content):
            break
    idx.check_length(shape, found, name)  # again: somebody may be writing it
    return content.reshape(shape)
