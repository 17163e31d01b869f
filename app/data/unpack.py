"""Decompress untrusted files, up to a limit."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable

from app.errors import DataError

GZIP = b"\x1f\x8b"
"""The first bytes of every gzip file, and of no IDX file."""

_PIECE = 1 << 20


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
