"""The demo's server answers its own page and refuses everything else."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from app.use.demo.classifier import example
from app.use.demo.server import ASSETS, LENGTH, Handler, Server

pytestmark = pytest.mark.slow
BODY = example()
KIND = {"Content-Type": "application/octet-stream"}


Answer = tuple[int, http.client.HTTPMessage, bytes]


def asked(server: Server, method: str, path: str, body: Any = None, headers: Any = None) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def sent(server: Server, content: bytes) -> bytes:
    """What comes back, until the server closes, for bytes that need be no request."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as connection:
        connection.sendall(content)
        got = b""
        while more := connection.recv(65_536):
            got += more
        return got


@pytest.fixture(autouse=True)
def serves_on(server: Server, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """After each test: nothing was complained of, and a drawing is read."""
    yield
    assert capfd.readouterr().err == ""
    assert asked(server, "POST", "/predict", BODY, KIND)[0] == 200


def test_a_drawing_gets_the_answer_of_each_network(server: Server):
    status, headers, content = asked(server, "POST", "/predict", BODY, KIND)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    answer = json.loads(content)
    assert set(answer) == {"picture", "networks", "milliseconds"}
    assert len(answer["picture"]) == 784
    assert [len(network["probabilities"]) for network in answer["networks"]] == [10, 10]
    status, _, content = asked(server, "POST", "/predict", bytes(LENGTH), KIND)
    assert (status, json.loads(content)) == (422, {"error": "nothing is drawn"})


def test_the_server_is_local_and_describes_its_networks(server: Server):
    assert server.server_address[0] == "127.0.0.1", "only this machine can reach it"
    about = json.loads(asked(server, "GET", "/about")[2])
    assert (about["side"] ** 2, about["hidden"], about["advice"]) == (LENGTH, [128], "")
    first, second = about["networks"]
    assert (first["operator"], second["operator"]) == ("custom.relu", "relu")
    assert first["accuracy"] == second["accuracy"] > 0.95


@pytest.mark.parametrize("path", ASSETS)
def test_pages_allow_no_content_of_other_sites(server: Server, path: str):
    status, headers, content = asked(server, "GET", path)
    policy = headers["Content-Security-Policy"]
    assert (status, headers["Content-Type"]) == (200, ASSETS[path][1])
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert (headers["X-Content-Type-Options"], headers["Server"]) == ("nosniff", "opsmith")
    assert b"http" not in content.replace(b"http://www.w3.org/2000/svg", b"")


def test_many_requests_at_once_are_answered(server: Server):
    with ThreadPoolExecutor(16) as threads:
        statuses = list(threads.map(lambda _: asked(server, "POST", "/predict", BODY, KIND)[0], range(32)))
    assert statuses == [200] * 32


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/nothing", {}, 404),
        ("GET", "/../server.py", {}, 404),
        ("GET", "/predict", {}, 404),
        ("POST", "/", KIND, 404),
        ("PUT", "/predict", KIND, 501),
        ("POST", "/predict", {}, 400),
        ("POST", "/predict", {"Content-Type": "text/plain"}, 400),
        ("POST", "/predict", {**KIND, "Content-Length": "5"}, 400),
        ("POST", "/predict", {**KIND, "Content-Length": "-1"}, 400),
        ("POST", "/predict", {**KIND, "Transfer-Encoding": "chunked"}, 400),
        *[
            (method, path, headers, 403)
            for method, path in (("GET", "/about"), ("POST", "/predict"))
            for headers in (
                *({**KIND, "Host": host} for host in ("example.org", "127.0.0.1", "")),
                *({**KIND, "Origin": origin} for origin in ("http://example.org", "null")),
            )
        ],
    ],
)
def test_other_requests_are_refused(server: Server, method: str, path: str, headers: dict[str, str], status: int):
    body = BODY if "Content-Length" not in headers and "Transfer-Encoding" not in headers else None
    actual, answered, content = asked(server, method, path, body, headers)
    assert actual == status
    assert answered["Content-Security-Policy"].startswith("default-src 'none'")
    assert b"Traceback" not in content


def test_bytes_that_are_no_request_are_refused(server: Server):
    headers = b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200
    for content in (b"\r\n\r\n", b"\xff\0 HTTP\r\n\r\n", b"GET /" + b"a" * 70_000, headers):
        answer = sent(server, content)
        assert answer == b"" or b" 4" in answer.partition(b"\r\n")[0]


def head(server: Server) -> bytes:
    """The beginning of a request that sends a drawing."""
    lines = ["POST /predict HTTP/1.0", f"Host: 127.0.0.1:{server.server_port}", f"Content-Length: {LENGTH}"]
    return "\r\n".join([*lines, f"Content-Type: {KIND['Content-Type']}", "", ""]).encode()


def test_a_client_that_sends_nothing_is_disconnected(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Handler, "timeout", 0.1)
    for content in (b"", b"GET / HT", head(server)):
        assert sent(server, content) == b""


def test_a_client_may_disconnect_before_the_answer(server: Server):
    for _ in range(5):
        connection = socket.create_connection(("127.0.0.1", server.server_port), timeout=20)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close with a reset
        connection.sendall(head(server) + BODY)
        connection.close()
    assert asked(server, "GET", "/about")[0] == 200


def test_an_error_of_the_server_is_a_line_on_its_console(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.delattr(server, "classifier")
    with pytest.raises((http.client.HTTPException, OSError)):
        asked(server, "GET", "/about")
    error = capfd.readouterr().err
    assert error == "error: a request failed: AttributeError: 'Server' object has no attribute 'classifier'\n"


def test_an_error_of_an_operator_is_the_answer(server: Server, monkeypatch: pytest.MonkeyPatch):
    def failing(pictures: Any) -> Any:
        raise ValueError("of all things\nand more")

    monkeypatch.setattr(server.classifier, "_networks", {"my_ops.py:own": SimpleNamespace(outputs=failing)})
    status, _, content = asked(server, "POST", "/predict", BODY, KIND)
    monkeypatch.undo()
    error = "the network of my_ops.py:own failed: ValueError: of all things"
    assert (status, json.loads(content)) == (500, {"error": error})
