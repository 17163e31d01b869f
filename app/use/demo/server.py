"""The demo's server: a few fixed pages, and the classification of a drawing.

It accepts only local connections. It protects against requests from other web sites: the Host header must name this
server, and a drawing must come from its own page.
"""

from __future__ import annotations

import json
import socketserver
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from app.errors import AppError
from app.printing import say
from app.use.demo.classifier import SIDE, Classifier, NothingDrawnError

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
ABOUT, PREDICT = "/about", "/predict"
DRAWING = "application/octet-stream"
LENGTH = SIDE * SIDE
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
    """Serves the page and the results of `classifier` locally."""

    daemon_threads = True
    allow_reuse_port = False  # a second demo on the same port is an error
    request_queue_size = 128  # requests that wait; the default of 5 refuses some of many at once

    def __init__(self, classifier: Classifier, port: int):
        self.classifier = classifier
        room = files(__package__) / "assets"
        self.assets = {path: ((room / name).read_bytes(), kind) for path, (name, kind) in ASSETS.items()}
        super().__init__((HOST, port), Handler)

    @property
    def address(self) -> str:
        """The URL of the page."""
        return f"http://{HOST}:{self.server_port}/"

    def server_bind(self) -> None:
        """Bind the port without a reverse DNS lookup, unlike Python's own server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print a line about an error of a connection, unless the client disconnected."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            say(f"error: a request failed: {type(error).__name__}: {error}", sys.stderr)


class Handler(BaseHTTPRequestHandler):
    """Handles one request."""

    server: Server
    timeout = 5.0
    """Seconds after which a client that sends nothing is left."""

    def do_GET(self) -> None:
        if not self._is_own():
            return
        if self.path == ABOUT:
            self._send_json(HTTPStatus.OK, self.server.classifier.about())
        elif self.path in self.server.assets:
            self._send(HTTPStatus.OK, *self.server.assets[self.path])
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        if not self._is_own():
            return
        if self.path != PREDICT:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        if (self.headers.get("Content-Type"), self.headers.get("Content-Length")) != (DRAWING, str(LENGTH)):
            self.send_error(HTTPStatus.BAD_REQUEST, f"a drawing is {LENGTH} bytes of {DRAWING}")
            return
        drawing = self.rfile.read(LENGTH)
        if len(drawing) < LENGTH:  # the client has gone
            return
        try:
            self._send_json(HTTPStatus.OK, self.server.classifier.classify(drawing))
        except NothingDrawnError as error:
            self._send_json(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": str(error)})
        except AppError as error:
            self._send_json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": str(error)})

    def _is_own(self) -> bool:
        """Return whether a request names this server and comes from its page; refuse it otherwise."""
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        own = host in (f"{HOST}:{self.server.server_port}", f"localhost:{self.server.server_port}")
        if own and origin in (None, f"http://{host}"):
            return True
        self.send_error(HTTPStatus.FORBIDDEN, "only this server's own page may ask")
        return False

    def _send_json(self, status: HTTPStatus, value: Any) -> None:
        content = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
        self._send(status, content, "application/json")

    def _send(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self) -> None:
        """Add the headers of every response."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def version_string(self) -> str:
        """Return the Server header."""
        return "opsmith"

    def log_message(self, format: str, *values: Any) -> None:
        """Do not log requests: there are hundreds per drawing."""
