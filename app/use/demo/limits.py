"""How much a client may send for one request, and for how long: whoever sends more, or too slowly, is refused."""

from __future__ import annotations

import io
import socket
import time
from http import HTTPStatus
from typing import Any

BYTES = 32_768
"""Of a request, its head and its body together."""
SECONDS, IDLE_SECONDS = 5.0, 30.0
"""From the first byte of a request to its last, and from one request of a connection to the next."""


class Refused(Exception):  # noqa: N818 - it is the answer to a request
    """A request that gets an error and no more; the connection is closed after it."""

    def __init__(self, status: HTTPStatus, reason: str):
        super().__init__(reason)
        self.status, self.reason = status, reason


class LimitedReader(io.RawIOBase):
    """The bytes that come in over a connection, request by request."""

    def __init__(self, connection: socket.socket):
        self._connection = connection
        self.begin()

    def begin(self) -> None:
        """A new request may begin: it has all of its bytes and seconds before it."""
        self._left, self._end = BYTES, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Wait for bytes; gives how many came, 0 where the client has closed."""
        seconds = self._end - time.monotonic() if self._end else IDLE_SECONDS
        if self._left <= 0:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {BYTES:,} bytes")
        if seconds <= 0:
            raise self._late()
        self._connection.settimeout(seconds)
        try:
            count = self._connection.recv_into(memoryview(buffer)[: self._left])
        except TimeoutError:
            if self._end:
                raise self._late() from None
            raise
        self._left -= count
        self._end = self._end or time.monotonic() + SECONDS
        return count

    def _late(self) -> Refused:
        return Refused(HTTPStatus.REQUEST_TIMEOUT, f"a request is to arrive within {SECONDS:g} seconds")
