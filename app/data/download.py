"""Download a file from a web server, with limits on its size and on the time, and with retries.

The content is not verified here.
"""

from __future__ import annotations

import http
import threading
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any

from app.errors import DataError
from app.printing import without_passwords

_PIECE = 1 << 16
_REDIRECTS = 10
# Statuses that may change when retried.
_FOR_NOW = frozenset({408, 500, 502, 503, 504})


class UnreachableError(DataError):
    """A source that fails in a way that makes it useless for other files, too."""


class _TemporaryError(DataError):
    """A failure that may pass."""


@dataclass(frozen=True)
class Timeouts:
    """The time limits, in seconds, and the number of tries."""

    connect: float = 5.0
    silence: float = 10.0  # without a byte
    start: float = 20.0  # for what comes before the first byte; all that follow must come at `slowest` on average
    slowest: float = 8192.0  # bytes per second
    tries: int = 3
    pause: float = 1.0  # between two tries


TIMEOUTS = Timeouts()


def download(url: str, limit: int, title: str, timeouts: Timeouts = TIMEOUTS) -> bytes:
    """Download `url` as sent, compressed if the server compresses. More than `limit` bytes are refused."""
    number = 1
    while True:
        try:
            return _Attempt(url, limit, title, timeouts).result()
        except _TemporaryError as error:
            if number >= timeouts.tries:
                raise UnreachableError(f"{error}, {number} times") from error
            time.sleep(timeouts.pause)
            number += 1


class _Attempt:
    """One try, in a thread of its own, so that it can be abandoned when the server is too slow.

    Time-outs of sockets do not do that: they begin anew with each byte, and some begin only after the name of the
    server was found. The thread ends with the next piece, at the latest with the process.
    """

    def __init__(self, url: str, limit: int, title: str, timeouts: Timeouts):
        self.url, self.limit, self.title, self.timeouts = url, limit, title, timeouts
        self.body = bytearray()
        self.failure: Exception | None = None
        self.over = threading.Event()
        self.given_up = False

    def result(self) -> bytes:
        """Return the body of the response; a failure is a DataError."""
        threading.Thread(target=self._run, name=f"download of {self.title}", daemon=True).start()
        begun = time.monotonic()
        try:
            while not self.over.wait(self._allowed() - (time.monotonic() - begun)):
                if time.monotonic() - begun >= self._allowed():
                    raise UnreachableError(f"too slow: {len(self.body):,} bytes in {self._allowed():.3g} seconds")
        finally:
            self.given_up = True
        if self.failure is not None:
            raise _in_plain_words(self.failure) from self.failure
        return bytes(self.body)

    def _allowed(self) -> float:
        """The time limit for the bytes received so far."""
        return self.timeouts.start + len(self.body) / self.timeouts.slowest

    def _run(self) -> None:
        try:
            self._receive()
        except Exception as error:  # which `result` raises
            self.failure = error
        finally:
            self.over.set()

    def _receive(self) -> None:
        # Imported here: a run from the cache needs neither, and they take longer than it does.
        import requests
        from tqdm import tqdm

        with requests.Session() as session, _open(session, self.url, self.timeouts) as response:
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isascii() and length.isdigit() and len(length) < 16 else None
            # disable=None: a bar on a terminal, and none anywhere else.
            with tqdm(total=total, desc=self.title, unit="B", unit_scale=True, leave=False, disable=None) as bar:
                # Not unpacked by the library, which has no limit; and not read in pieces of a fixed size, as the
                # next byte would not count before the piece is full.
                while (piece := response.raw.read1(_PIECE, decode_content=False)) and not self.given_up:
                    self.body += piece
                    bar.update(len(piece))
                    if len(self.body) > self.limit:
                        raise DataError(
                            f"the response goes on after {self.limit:,} bytes, more than the file has unpacked"
                        )


def _open(session: Any, url: str, timeouts: Timeouts) -> Any:
    """Follow redirects and return the response, whose body is not read yet."""
    session.auth = _of_address  # instead of ~/.netrc, which requests would send to whatever host an address names
    to_where = session.get_redirect_target
    # By itself, requests would read, and unpack, the bodies of redirects, however long they are.
    session.get_redirect_target = lambda response: None
    for _ in range(_REDIRECTS + 1):
        response = session.get(
            url,
            headers={"Accept-Encoding": "identity"},  # it is packed already
            timeout=(timeouts.connect, timeouts.silence),
            stream=True,
        )
        target = to_where(response)
        if target is None:
            _check_status(response.status_code)
            return response
        response.close()
        url = urllib.parse.urljoin(url, target)
    raise DataError(f"more than {_REDIRECTS} redirects, the last to {printable(url)}")


def _of_address(request: Any) -> Any:
    """Authenticate a request by the name and the password in its address, if there are any."""
    from requests.auth import HTTPBasicAuth
    from requests.utils import get_auth_from_url

    name, password = get_auth_from_url(request.url)
    return HTTPBasicAuth(name, password)(request) if name or password else request


def _check_status(code: int) -> None:
    if code == http.HTTPStatus.OK:
        return
    # Not `response.reason`, which the server may have written anything into.
    names = {status.value: status.phrase for status in http.HTTPStatus}
    message = f"the status was {code} {names.get(code, 'which nobody has defined')}"
    if code == http.HTTPStatus.TOO_MANY_REQUESTS:
        raise UnreachableError(message)
    raise _TemporaryError(message) if code in _FOR_NOW else DataError(message)


def _in_plain_words(error: Exception) -> DataError:
    """An error of the HTTP library as a DataError in plain words."""
    import http.client

    import requests
    import urllib3

    if isinstance(error, DataError):
        return error
    # What really happened: requests wraps "Connection refused" four deep in addresses of its own objects. Only
    # through the network's own errors, not on to one that the caller was busy with.
    innermost: BaseException = error
    while isinstance(innermost.__context__, (OSError, urllib3.exceptions.HTTPError, http.client.HTTPException)):
        innermost = innermost.__context__
    message = printable(innermost)
    if any(isinstance(cause, urllib3.exceptions.ProtocolError) for cause in (error, *error.args)):
        return _TemporaryError(f"the connection was cut off ({message})")
    if isinstance(error, (requests.ConnectionError, requests.Timeout, urllib3.exceptions.TimeoutError)):
        return UnreachableError(f"no connection ({message})")
    return DataError(f"the download failed ({message})")


def printable(content: object) -> str:
    """Text from a server on one line, without control characters."""
    text = " ".join(without_passwords(str(content)).split())[:200]
    return "".join(letter if letter.isprintable() else "?" for letter in text)
