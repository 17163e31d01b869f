"""The demo's server: a few fixed pages, and the classification of a drawing. It accepts only local connections. It
protects against requests from other web sites: the Host header must name this server, and a drawing must come from its
own page.
"""

from __future__ import annotations

import io
import json
import socket
import socketserver
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from app.errors import AppError
from app.printing import say
from app.use.demo.limits import SECONDS, LimitedReader, Refused
from app.use.demo.reading import SIDE, NothingDrawnError, Reader

HOST = "127.0.0.1"
ASSETS = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/demo.css": ("demo.css", "text/css; charset=utf-8"),
    "/demo.js": ("demo.js", "text/javascript; charset=utf-8"),
    "/asking.js": ("asking.js", "text/javascript; charset=utf-8"),
    "/pad.js": ("pad.js", "text/javascript; charset=utf-8"),
    "/network.js": ("network.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""The known paths, each with a file in `assets/` and its type."""
ABOUT, ANSWER = "/about", "/answer"
DRAWING = "application/octet-stream"
JSON = "application/json"
LENGTH = SIDE * SIDE
CONNECTIONS = 32
"""The maximum number of concurrent connections."""
LINGER_BYTES, LINGER_SECONDS = 2**20, 1.0
"""The number of bytes read and discarded from a refused client."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""The headers of every response: no content from or for other sites."""


class Server(ThreadingHTTPServer):
    """Serves the page and the results of `reader` locally."""

    daemon_threads = True
    allow_reuse_port = False  # a second demo on the same port is an error
    request_queue_size = CONNECTIONS

    def __init__(self, reader: Reader, port: int):
        self.reader = reader
        room = files("app.use.demo") / "assets"
        self.assets = {path: ((room / name).read_bytes(), kind) for path, (name, kind) in ASSETS.items()}
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__((HOST, port), Handler)

    @property
    def address(self) -> str:
        """The URL of the page."""
        return f"http://{HOST}:{self.server_port}/"

    @property
    def hosts(self) -> tuple[str, str]:
        """The allowed Host headers."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"

    def server_bind(self) -> None:
        """Bind the port without a reverse DNS lookup, unlike Python's own server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a new thread, unless there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print a line about an error of a connection, unless the client disconnected."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            say(f"error: a request failed: {type(error).__name__}: {error}", sys.stderr)


class Handler(BaseHTTPRequestHandler):
    """Handles the requests of one connection."""

    server: Server
    protocol_version, default_request_version = "HTTP/1.1", "HTTP/1.0"
    request_version, requestline, command = "HTTP/1.1", "", ""  # until a request sets it
    disable_nagle_algorithm = True
    wbufsize = -1  # a response is sent in one piece

    def setup(self) -> None:
        super().setup()
        self._incoming = LimitedReader(self.connection)
        self.rfile = io.BufferedReader(self._incoming)
        self._was_refused = False

    def handle_one_request(self) -> None:
        """Answer the next request."""
        self._incoming.begin()
        try:
            super().handle_one_request()
        except Refused as refused:
            self.send_error(refused.status, refused.reason)
            self.wfile.flush()

    def finish(self) -> None:
        super().finish()
        if self._was_refused:
            _linger(self.connection)

    def do_GET(self) -> None:
        self._check_host()
        if self.path == ABOUT:
            self._send_json(HTTPStatus.OK, self.server.reader.about())
        elif self.path in self.server.assets:
            self._send(HTTPStatus.OK, *self.server.assets[self.path])
        elif self.path == ANSWER:
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{ANSWER} takes POST")
        else:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such page")

    def do_POST(self) -> None:
        self._check_host()
        if self.path != ANSWER:
            known = self.path == ABOUT or self.path in self.server.assets
            status = HTTPStatus.METHOD_NOT_ALLOWED if known else HTTPStatus.NOT_FOUND
            raise Refused(status, f"POST goes to {ANSWER}")
        drawing = self._drawing()
        try:
            self._send_json(HTTPStatus.OK, self.server.reader.read(drawing))
        except NothingDrawnError as error:
            self._send_json(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": str(error)})
        except AppError as error:
            self._send_json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": str(error)})

    def _check_host(self) -> None:
        """Refuse a request with a foreign Host header or from another site's page."""
        named, origin = self.headers.get_all("Host", []), self.headers.get("Origin")
        if len(named) != 1 or named[0] not in self.server.hosts:
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, f"this is {self.server.address}, and nothing else")
        if origin is not None and origin != f"http://{named[0]}":
            raise Refused(HTTPStatus.FORBIDDEN, "only this server's own page may ask")

    def _drawing(self) -> bytes:
        """Read the body of a request, which has a fixed size."""
        kind, length = self.headers.get("Content-Type"), self.headers.get_all("Content-Length", [])
        if kind != DRAWING:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"a drawing is {DRAWING}")
        if length != [str(LENGTH)] or "Transfer-Encoding" in self.headers:
            larger = len(length) == 1 and length[0].isdecimal() and int(length[0][:12]) > LENGTH
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE if larger else HTTPStatus.BAD_REQUEST
            raise Refused(status, f"a drawing has {LENGTH:,} bytes: {SIDE} rows of {SIDE} pixels")
        body = self.rfile.read(LENGTH)
        if len(body) < LENGTH:
            raise Refused(HTTPStatus.BAD_REQUEST, f"a drawing has {LENGTH:,} bytes, and {len(body):,} came")
        return body

    def _send_json(self, status: HTTPStatus, value: Any) -> None:
        self._send(status, json.dumps(value, allow_nan=False, separators=(",", ":")).encode(), JSON)

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.connection.settimeout(SECONDS)
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        if self._was_refused:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send a short error and close the connection, whose remaining input is undefined."""
        self._was_refused = self.close_connection = True
        reason = (message or HTTPStatus(code).phrase)[:200]
        self._send(code, json.dumps({"error": reason}).encode(), JSON)

    def version_string(self) -> str:
        """Return the Server header."""
        return "opsmith"

    def log_message(self, format: str, *values: Any) -> None:
        """Do not log requests: there are hundreds per drawing."""


def _linger(connection: socket.socket) -> None:
    """Read the client's remaining input briefly: closing with unread input would discard the error response."""
    end, left = time.monotonic() + LINGER_SECONDS, LINGER_BYTES
    try:
        connection.shutdown(socket.SHUT_WR)
        while left > 0 and (seconds := end - time.monotonic()) > 0:
            connection.settimeout(seconds)
            taken = len(connection.recv(65_536))
            left -= taken or left
    except OSError:
        return  # it has gone
