"""The demo's server takes a drawing and nothing else: all other requests get a short error, and it serves on."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.use.demo import limits, reading
from app.use.demo import server as server_module
from app.use.demo.reading import SIDE
from app.use.demo.server import ASSETS, LENGTH, Server
from app.use.trained import TrainedNetwork

pytestmark = pytest.mark.slow
BODY = reading._example()
KIND = {"Content-Type": "application/octet-stream"}


def asked(server: Server, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read()
    finally:
        connection.close()


def sent(server: Server, *pieces: bytes, close: bool = True) -> bytes:
    """What comes back, until the server closes, for bytes that need be no request."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as connection:
        for piece in pieces:
            connection.sendall(piece)
        if close:
            connection.shutdown(socket.SHUT_WR)
        got = b""
        while more := connection.recv(65_536):
            got += more
        return got


def post(server: Server, *lines: str, body: bytes = b"") -> bytes:
    head = [f"Host: 127.0.0.1:{server.server_port}", *lines] if not any(x.startswith("Host") for x in lines) else lines
    return sent(server, ("\r\n".join(["POST /answer HTTP/1.1", *head]) + "\r\n\r\n").encode("latin-1") + body)


def error_of(answer: bytes) -> tuple[int, str]:
    """The status and the message of an error, which is short, and JSON; and the connection ends with it."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\nConnection: close" in head
    assert len(body) < 300
    assert b"Traceback" not in body
    return int(head.split()[1]), json.loads(body)["error"]


@pytest.fixture(autouse=True)
def serves_on(server: Server, capfd: pytest.CaptureFixture[str]):
    """After each test: nothing was complained of, and a drawing is read."""
    yield
    assert capfd.readouterr().err == ""
    assert asked(server, "POST", "/answer", BODY, **KIND)[0] == 200


# What it gives


def test_a_drawing_is_answered_with_what_each_network_says(server: Server):
    status, kind, content = asked(server, "POST", "/answer", BODY, **KIND)
    assert (status, kind) == (200, "application/json")
    answer = json.loads(content)
    assert set(answer) == {"picture", "networks", "milliseconds"}
    assert len(answer["picture"]) == 784
    assert [len(network["probabilities"]) for network in answer["networks"]] == [10, 10]


def test_a_page_learns_what_it_shows(server: Server):
    about = json.loads(asked(server, "GET", "/about")[2])
    assert about["side"] == SIDE
    assert (about["engine"], about["hidden"], about["advice"]) == ("reference engine", [128], "")
    first, second = about["networks"]
    assert (first["operator"], second["operator"]) == ("custom.relu", "relu")
    assert first["accuracy"] == second["accuracy"] > 0.95


@pytest.mark.parametrize("path", ASSETS)
def test_pages_allow_nothing_from_elsewhere(server: Server, path: str):
    answer = sent(server, f"GET {path} HTTP/1.0\r\nHost: localhost:{server.server_port}\r\n\r\n".encode()).decode()
    head, _, content = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 ")
    assert f"Content-Type: {ASSETS[path][1]}" in head
    assert "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'" in head
    assert "unsafe" not in head
    assert "frame-ancestors 'none'" in head
    assert "X-Content-Type-Options: nosniff" in head
    assert "Python" not in head
    assert "http" not in content.replace("http://www.w3.org/2000/svg", "")


def test_one_connection_asks_many_times(server: Server):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    statuses = set()
    for _ in range(20):
        connection.request("POST", "/answer", BODY, KIND)
        response = connection.getresponse()
        response.read()
        statuses.add(response.status)
    connection.close()
    assert statuses == {200}


def test_many_ask_at_once(server: Server):
    statuses = []
    ask = lambda: statuses.append(asked(server, "POST", "/answer", BODY, **KIND)[0])  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 16


def test_only_this_machine_can_reach_it(server: Server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.socket.getsockname()[0] == "127.0.0.1"


# What it refuses


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/../server.py", 404),
        ("GET", "/assets/index.html", 404),
        ("GET", "/%2e%2e/etc/passwd", 404),
        ("GET", "/?page=1", 404),
        ("GET", "http://example.org/", 404),
        ("GET", "/answer", 405),
        ("POST", "/", 405),
        ("POST", "/about", 405),
        ("POST", "/nothing", 404),
        ("PUT", "/answer", 501),
        ("DELETE", "/", 501),
        ("OPTIONS", "/answer", 501),
        ("TRACE", "/", 501),
        ("GEt", "/", 501),
    ],
)
def test_other_paths_and_methods_are_refused(server: Server, method: str, path: str, status: int):
    line = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n"
    assert error_of(sent(server, line.encode()))[0] == status


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "localhost:1", "127.0.0.1.example.org:{port}", ""])
def test_requests_to_another_name_are_refused(server: Server, host: str):
    """As of a site whose name was made to lead here after its page had been opened."""
    for line in (f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n", f"POST /answer HTTP/1.1\r\nHost: {host}\r\n\r\n"):
        status, told = error_of(sent(server, line.replace("{port}", str(server.server_port)).encode()))
        assert (status, told) == (421, f"this is {server.address}, and nothing else")


def test_requests_without_a_name_or_with_two_are_refused(server: Server):
    own = f"Host: 127.0.0.1:{server.server_port}\r\n"
    for hosts in ("", own + own):
        assert error_of(sent(server, f"GET / HTTP/1.1\r\n{hosts}\r\n".encode()))[0] == 421


@pytest.mark.parametrize("origin", ["http://example.org", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_another_sites_page_may_not_ask(server: Server, origin: str):
    origin = origin.replace("{port}", str(server.server_port))
    status, _, content = asked(server, "POST", "/answer", BODY, **KIND, Origin=origin)
    assert (status, json.loads(content)["error"]) == (403, "only this server's own page may ask")


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_of_another_type_is_refused(server: Server, kind: str):
    """Among these are the types that a form of another site could send."""
    assert asked(server, "POST", "/answer", BODY, Content_Type=kind)[0] == 415


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([], 400),
        (["Content-Length: 0"], 400),
        ([f"Content-Length: {LENGTH - 1}"], 400),
        ([f"Content-Length: {LENGTH + 1}"], 413),
        (["Content-Length: 99999999999999999999999"], 413),
        (["Content-Length: -1"], 400),
        (["Content-Length: 0x3100"], 400),
        (["Content-Length: +12544"], 400),
        (["Content-Length: ١٢٥٤٤"], 400),
        (["Content-Length: 12544, 12544"], 400),
        ([f"Content-Length: {LENGTH}", f"Content-Length: {LENGTH}"], 400),
        ([f"Content-Length: {LENGTH}", "Transfer-Encoding: chunked"], 400),
        (["Transfer-Encoding: chunked"], 400),
    ],
)
def test_a_body_of_another_length_is_refused(server: Server, lines: list[str], status: int):
    lines = [line.encode().decode("latin-1") for line in lines]
    found, told = error_of(post(server, "Content-Type: application/octet-stream", *lines, body=BODY))
    assert (found, told) == (status, "a drawing has 12,544 bytes: 112 rows of 112 pixels")


def test_a_body_that_ends_too_soon_is_refused(server: Server):
    lines = ("Content-Type: application/octet-stream", f"Content-Length: {LENGTH}")
    assert error_of(post(server, *lines, body=BODY[:100])) == (400, "a drawing has 12,544 bytes, and 100 came")


def test_a_sheet_without_ink_is_told_of_and_the_connection_lives(server: Server):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    for body, status in ((bytes(LENGTH), 422), (BODY, 200)):
        connection.request("POST", "/answer", body, KIND)
        response = connection.getresponse()
        content = json.loads(response.read())
        assert response.status == status
    assert "error" not in content
    connection.close()


@pytest.mark.parametrize(
    "sends",
    [
        lambda port: b"x" * 100_000,
        lambda port: b"GET /" + b"x" * 100_000,
        lambda port: b"GET / HTTP/1.1\r\n" + b"".join(b"a%d: b\r\n" % n for n in range(20_000)),
        lambda port: b"GET / HTTP/1.1\r\na: " + b"b" * 1_000_000,
    ],
)
def test_endless_requests_are_cut_off(server: Server, sends: Callable[[int], bytes]):
    status, told = error_of(sent(server, sends(server.server_port)))
    assert status in (400, 413, 414, 431)
    assert len(told) <= 200


@pytest.mark.parametrize(
    "line", [b"\x16\x03\x01\x02\x00\x01\x00", b"\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 50 + b"\r\n"]
)
def test_what_is_no_request_is_refused_or_dropped(server: Server, line: bytes):
    answer = sent(server, line)
    assert not answer or error_of(answer)[0] in (400, 501, 505)


@given(st.binary(max_size=300))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_refused_or_dropped(server: Server, content: bytes):
    answer = sent(server, content)
    assert not answer or error_of(answer)[0] >= 400


@given(st.binary(max_size=2 * LENGTH), st.sampled_from(["/answer", "/"]))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_body_is_refused(server: Server, body: bytes, path: str):
    status, _, content = asked(server, "POST", path, body, **KIND)
    assert status in (400, 405, 413)
    assert len(content) < 300


@given(st.dictionaries(st.integers(0, LENGTH - 1), st.integers(0, 255)), st.integers(0, 255))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_drawing_is_read(server: Server, dots: dict[int, int], ground: int):
    body = bytearray([ground]) * LENGTH
    for place, ink in dots.items():
        body[place] = ink
    assert asked(server, "POST", "/answer", bytes(body), **KIND)[0] == (200 if max(body) > 25 else 422)


# Clients that take their time


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "SECONDS", 0.4)
    monkeypatch.setattr(limits, "IDLE_SECONDS", 0.6)


def test_a_request_that_trickles_is_cut_off(server: Server, hurried: None):
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as connection:
        got = b""
        connection.settimeout(0.05)
        while time.monotonic() - start < 10 and not got:
            connection.send(b"G")
            try:
                got = connection.recv(65_536)
            except TimeoutError:
                continue
    assert error_of(got) == (408, "a request is to arrive within 0.4 seconds")
    assert time.monotonic() - start < 5


def test_a_body_that_does_not_come_is_cut_off(server: Server, hurried: None):
    head = f"POST /answer HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\nContent-Length: {LENGTH}\r\n"
    head += "Content-Type: application/octet-stream\r\n\r\n"
    assert error_of(sent(server, head.encode() + BODY[:500], close=False))[0] == 408


def test_a_connection_that_says_nothing_is_closed(server: Server, hurried: None):
    assert sent(server, close=False) == b""


def test_so_many_connections_at_once_and_no_more(server: Server, monkeypatch: pytest.MonkeyPatch):
    idle = [socket.create_connection(("127.0.0.1", server.server_port), timeout=20) for _ in range(40)]
    try:
        time.sleep(0.2)
        with pytest.raises((http.client.HTTPException, OSError)):
            asked(server, "GET", "/")
    finally:
        for connection in idle:
            connection.close()
    end = time.monotonic() + 10
    while server._free._value < server_module.CONNECTIONS and time.monotonic() < end:
        time.sleep(0.02)


def test_a_client_that_goes_while_it_is_answered_is_no_error(server: Server, capfd: pytest.CaptureFixture[str]):
    head = f"POST /answer HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\nContent-Length: {LENGTH}\r\n"
    head += "Content-Type: application/octet-stream\r\n\r\n"
    for _ in range(5):
        connection = socket.create_connection(("127.0.0.1", server.server_port), timeout=20)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close with a reset
        connection.sendall(head.encode() + BODY)
        connection.close()
    assert asked(server, "GET", "/about")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_mistake_in_the_server_is_a_line_for_whoever_started_it(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.delattr(server, "reader")
    with pytest.raises((http.client.HTTPException, OSError)):
        asked(server, "GET", "/about")
    assert (
        capfd.readouterr().err == "error: a request failed: AttributeError: 'Server' object has no attribute 'reader'\n"
    )


def test_an_operator_that_fails_is_told_in_a_line(server: Server, monkeypatch: pytest.MonkeyPatch):
    def failing(pictures: object) -> list:
        raise ValueError("of all things\nand more")

    failed = TrainedNetwork("my_ops.py:own", None, failing)
    monkeypatch.setattr(server.reader, "_run", replace(server.reader._run, networks=[failed]))
    status, _, content = asked(server, "POST", "/answer", BODY, **KIND)
    monkeypatch.undo()
    assert (status, json.loads(content)["error"]) == (
        500,
        "the network of my_ops.py:own failed: ValueError: of all things",
    )
