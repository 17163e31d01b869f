"""A stand-in for MNIST that is small enough to serve, damage and fetch many times over."""

from __future__ import annotations

import gzip
import hashlib
import os
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import trustme

from app.data.download import Timeouts
from app.data.files import FILES, File, read

SHORT_TIMEOUTS = Timeouts(connect=0.5, silence=0.3, start=1.0, slowest=1000.0, tries=3, pause=0.01)


def idx_bytes(array: np.ndarray) -> bytes:
    """An IDX file of unsigned bytes, written down from the description of the format."""
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture(scope="session")
def contents() -> dict[str, bytes]:
    """Four IDX files with MNIST's names: 20 training and 10 test images of 3 x 2 pixels."""
    random = np.random.default_rng(0)
    arrays = [
        random.integers(0, 256, (20, 3, 2)),
        np.arange(20) % 10,
        random.integers(0, 256, (10, 3, 2)),
        np.arange(10),
    ]
    return {file.name: idx_bytes(array) for file, array in zip(FILES, arrays, strict=True)}


@pytest.fixture(scope="session")
def files(contents: dict[str, bytes]) -> tuple[File, ...]:
    """What is known of those four in advance."""
    return tuple(File(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in contents.items())


@dataclass
class Giver:
    """A source that has what it is given, and remembers what it was asked for."""

    has: dict[str, bytes | Exception]
    asked: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "giver:"

    def fetch(self, name: str, size: int) -> bytes:
        self.asked.append(name)
        answer = self.has[name]
        if isinstance(answer, Exception):
            raise answer
        return answer


def assert_whole(folder: Path, files: tuple[File, ...], contents: dict[str, bytes]) -> None:
    """All four files are in the folder, and nothing else is."""
    assert {file.name: read(file, folder).tobytes() for file in files} == contents
    assert sorted(os.listdir(folder)) == sorted(contents)


Handler = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Server:
    """A web server on this machine that answers every GET with `answer`."""

    url: str
    answer: Handler | None = None
    requests: list[str] = field(default_factory=list)


@contextmanager
def serving(certificate: trustme.LeafCert | None = None) -> Iterator[Server]:
    """Such a server; with a certificate, one of https."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.requests.append(self.path)
            assert served.answer is not None
            served.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    listening.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
    scheme = "http" if certificate is None else "https"
    served = Server(f"{scheme}://127.0.0.1:{listening.server_port}/mnist/")
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as served:
        yield served


def respond(body: bytes, status: int = 200, **headers: str) -> Handler:
    """An answer in full; `Content_Length="9"` and the like add or change its headers."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in ({"Content_Length": str(len(body))} | headers).items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return answer


def serve_packed(contents: dict[str, bytes]) -> Handler:
    """A mirror as it should be: each file packed, under its name with `.gz`; 404 for any other."""
    packed = {f"/mnist/{name}.gz": gzip.compress(content) for name, content in contents.items()}

    def answer(request: BaseHTTPRequestHandler) -> None:
        exists = request.path in packed
        respond(packed.get(request.path, b"no such file"), 200 if exists else 404)(request)

    return answer
