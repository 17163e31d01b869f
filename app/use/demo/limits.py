"""Limits on the size and the duration of a request. A client that exceeds them is refused."""

from __future__ import annotations

import io
import socket
import time
from http import HTTPStatus
from typing import Any

BYTES = 32_768
"""The maximum size of a request, headers and body together."""
SECONDS, IDLE_SECONDS = 5.0, 30.0
"""The maximum duration of a request, and of the pause before the next one on a connection."""


class Refused(Exception):  # noqa: N818 - it is a response
    """An error response, after which the connection is closed."""

    def __init__(self, status: HTTPStatus, reason: str):
        super().__init__(reason)
        self.status, self.reason = status, reason


class LimitedReader(io.RawIOBase):
    """Reads the bytes of a connection with limits per request."""

    def __init__(self, connection: socket.socket):
        self._connection = connection
        self.begin()

    def begin(self) -> None:
        """Reset the limits for a new request."""
        self._left, self._end = BYTES, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Wait for bytes; return their number, or 0 if the client has closed the connection."""
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
