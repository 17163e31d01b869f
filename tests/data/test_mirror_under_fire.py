"""A web server that misbehaves on purpose: each time one clear error in a bounded time, or the right file after all."""

from __future__ import annotations

import gzip
import io
import os
import re
import socket
import struct
import sys
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.data.download import UnreachableError, download
from app.data.files import fetch
from app.data.sources import HttpMirror
from app.errors import DataError

from .conftest import SHORT_TIMEOUTS, Giver, assert_whole, respond, serve_packed


@pytest.fixture
def mirror(server):
    return HttpMirror(server.url, SHORT_TIMEOUTS)


def moved(contents):
    """Every file is elsewhere, and the answer that says so is long."""
    good = serve_packed(contents)

    def answer(request):
        if request.path.startswith("/mnist/moved/"):
            request.path = request.path.replace("moved/", "")
            good(request)
        else:
            respond(b"x" * 100_000, 302, Location=request.path.replace("/mnist/", "moved/"))(request)

    return answer


NAME = "train-images-idx3-ubyte"
GOOD = {
    "packed": serve_packed,
    "moved": moved,
    "packed for the transfer": lambda contents: respond(gzip.compress(contents[NAME]), Content_Encoding="gzip"),
    "packed twice": lambda contents: respond(gzip.compress(gzip.compress(contents[NAME])), Content_Encoding="gzip"),
}


@pytest.mark.parametrize("answer", GOOD.values(), ids=GOOD.keys())
@pytest.mark.parametrize("terminal", [True, False])
def test_a_mirror_gives_the_unpacked_file_with_a_bar_on_a_terminal(
    server, mirror, files, contents, monkeypatch, terminal, answer
):
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    server.answer = answer(contents)
    for source in (mirror, HttpMirror(server.url.rstrip("/"))):
        assert source.fetch(NAME, files[0].size) == contents[NAME]
    assert server.requests[0] == f"/mnist/{NAME}.gz"
    assert (NAME in stderr.getvalue()) == bool(stderr.getvalue()) == terminal


def say(raw: bytes):
    return lambda request: request.wfile.write(raw)


begin = say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n\x1f\x8b some of it")


def redirect_to(place: str):
    return respond(b"", 302, Location=place)


def redirect_with_an_endless_body(request):
    say(f"HTTP/1.1 302 Found\r\nLocation: {request.path}\r\n\r\n".encode())(request)
    go_on_for_ever(request)


def hang_up(request):
    request.connection.shutdown(socket.SHUT_RDWR)


def reset_in_the_middle(request):
    begin(request)
    # Closed with nothing lingering: the other side sees a reset, not an end.
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.connection.close()


def silent_in_the_middle(request):
    begin(request)
    time.sleep(5)


def go_on_for_ever(request):
    piece = os.urandom(1 << 16)
    while True:
        request.wfile.write(piece)


UNPACKED = b"\0\0\x08\x03" + bytes(132)
TROUBLE = {
    "404": (respond(b"?", 404), "the status was 404 Not Found"),
    "429": (respond(b"?", 429, Retry_After="3600"), "the status was 429 Too Many Requests$"),
    "503": (respond(b"?", 503), "the status was 503 Service Unavailable, 3 times"),
    "204": (respond(b"", 204), "the status was 204 No Content"),
    "a number of its own": (respond(b"?", 799), "the status was 799 which nobody has defined"),
    "escape codes": (say(b"HTTP/1.1 404 \x1b[2Jgone\r\n\r\n"), "the status was 404 Not Found"),
    "endless redirects": (redirect_with_an_endless_body, "more than 10 redirects, the last to http://127"),
    "a redirect to a file": (redirect_to("file:///etc/passwd"), "the download failed .No connection adapters"),
    "a redirect to nonsense": (redirect_to("http://["), "the download failed"),
    "a redirect to nowhere": (redirect_to("http://127.0.0.1:1/"), r"no connection \(\[Errno \d+\] Connection refused"),
    "hangs up": (hang_up, "the connection was cut off .*, 3 times"),
    "reset": (reset_in_the_middle, "the connection was cut off .*reset by peer.*, 3 times"),
    "shorter": (respond(b"\x1f\x8b short", Content_Length="100"), "connection was cut off .*92 more exp.*, 3 times"),
    "longer": (respond(gzip.compress(UNPACKED), Content_Length="20"), "the gzip file is damaged"),
    "no gzip, though it says so": (respond(b"not packed", Content_Encoding="gzip"), "should be .*b'not packed'"),
    "cut gzip": (respond(gzip.compress(b"content")[:-9]), "the gzip file is damaged"),
    "wrong, of the right length": (respond(gzip.compress(UNPACKED)), "should have the SHA-256 .*; found"),
    "HTML": (respond(b"<html>Please log in</html>"), "should be 136 bytes; found 26 that begin with b'<html>Please"),
    "empty": (respond(b""), "should be 136 bytes; found 0"),
    "a bomb": (respond(gzip.compress(bytes(2_000_000), 9)), "should be 136 bytes; found 4,233 that"),
    "a bomb in a bomb": (respond(gzip.compress(gzip.compress(bytes(5_000_000)))), "136 bytes; found 137 that"),
    "endless": (go_on_for_ever, "the connection was cut off|the download failed|the response goes on"),
    "large": (respond(os.urandom(1 << 18)), "the response goes on after 4,232 bytes"),
    "length: many": (respond(b"?", Content_Length="many"), "the connection was cut off|should be|the download failed"),
    "not HTTP": (say(b"220 ftp ready\r\n"), "the connection was cut off .*, 3 times"),
    "endless headers": (say(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 500), "the connection was cut off .*headers"),
    "an endless header": (say(b"HTTP/1.1 200 OK\r\na: " + b"b" * 100_000), "the connection was cut off"),
    "bad chunks": (say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "the connection was cut off"),
    "silent at once": (lambda request: time.sleep(5), "no connection .*timed out"),
    "silent in the middle": (silent_in_the_middle, "no connection .*timed out"),
}


@pytest.mark.parametrize(("answer", "message"), TROUBLE.values(), ids=TROUBLE.keys())
def test_a_failed_download_is_one_line_in_bounded_time_and_the_next_source_is_asked(
    server, mirror, files, contents, tmp_path, answer, message
):
    assert files[0].size == len(UNPACKED)
    server.answer = answer
    lines: list[str] = []
    start = time.monotonic()
    fetch(files, tmp_path, [mirror, Giver(dict(contents))], lines.append)
    assert time.monotonic() - start < 4
    assert lines[0] == f"Asking {server.url} for 4 files"
    assert re.search(message, lines[1])
    assert all(line.isprintable() for line in lines)
    assert "Asking giver: for 4 files" in lines
    assert_whole(tmp_path, files, contents)


def test_an_unreachable_source_is_asked_for_one_file_and_others_for_all(server, mirror, files, tmp_path):
    for status, requests in [(503, 3), (429, 1), (404, 4)]:
        server.requests.clear()
        server.answer = respond(b"?", status)
        with pytest.raises(DataError, match="No source could give"):
            fetch(files, tmp_path, [mirror], lambda _: None)
        assert len(server.requests) == requests


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("beginning", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\na: ", b"x"),
        (CHUNKED, b"1\r\nx\r\n"),
        (CHUNKED + b"1;", b"x"),
    ],
    ids=["the body", "the headers", "chunks", "the length of a chunk"],
)
def test_a_server_that_sends_byte_by_byte_is_given_up(server, files, beginning, drop):
    def answer(request):
        request.wfile.write(beginning)
        for _ in range(25):
            time.sleep(0.01)
            request.wfile.write(drop)

    server.answer = answer
    mirror = HttpMirror(server.url, replace(SHORT_TIMEOUTS, start=0.15))
    start = time.monotonic()
    with pytest.raises(UnreachableError, match=r"too slow: \d+ bytes in 0.1\d* seconds"):
        mirror.fetch(files[0].name, files[0].size)
    while any(thread.name == f"download of {files[0].name}" for thread in threading.enumerate()):
        assert time.monotonic() - start < 5  # the drops end after a quarter of a second
        time.sleep(0.01)


def test_a_slow_server_that_is_fast_enough_is_waited_for(server, files, contents):
    packed = gzip.compress(contents[files[0].name])

    def answer(request):
        request.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for at in range(0, len(packed), 8):
            time.sleep(0.02)
            request.wfile.write(packed[at : at + 8])

    server.answer = answer
    timeouts = replace(SHORT_TIMEOUTS, start=0.2, slowest=80.0)
    assert HttpMirror(server.url, timeouts).fetch(files[0].name, files[0].size) == contents[files[0].name]


@pytest.mark.parametrize(
    "trouble",
    [respond(b"?", 503), respond(b"?", 500), reset_in_the_middle, hang_up, respond(b"sh", Content_Length="99")],
    ids=["503", "500", "reset in the middle", "hangs up", "shorter"],
)
def test_temporary_failures_are_tried_three_times(server, mirror, files, contents, trouble):
    good = serve_packed(contents)
    server.answer = lambda request: (trouble if len(server.requests) < mirror.timeouts.tries else good)(request)
    assert mirror.fetch(files[0].name, files[0].size) == contents[files[0].name]
    assert len(server.requests) == mirror.timeouts.tries


PIECES = [b"HTTP/1.1 ", b"200", b"302", b"429", b" OK\r\n", b"\r\n", b"\r\n\r\n", b"5\r\n", b"1", b"x:", b"\xff\0"]
PIECES += [b"Content-Length: ", b"Transfer-Encoding: chunked\r\n", b"Location: ", b"http://", b"//", b"[::1"]
PIECES += [b"Set-Cookie: a=b; expires=", b"Content-Encoding: gzip\r\n", b"\x1f\x8b\x08\0"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join))
def test_any_bytes_as_an_answer_are_content_or_a_data_error(server, raw):
    server.answer = say(raw)
    timeouts = replace(SHORT_TIMEOUTS, tries=1)
    try:
        body, message = download(server.url, 1000, "a file", timeouts), ""
    except DataError as error:
        body, message = b"", str(error)
    assert len(body) <= 1000
    assert message.isprintable()


def test_addresses_that_are_invalid_end_in_one_error_that_lists_them(files, tmp_path):
    mirrors = [
        HttpMirror(f"http://{place}", SHORT_TIMEOUTS)
        for place in ("[", ":::/", "a..b/", "\udc80/", "x:99999/", "user:@:80/", "?")
    ]
    with pytest.raises(DataError, match=r"No source could give train-images.*asked: http://\[, http://:::/") as error:
        fetch(files, tmp_path, mirrors, lambda _: None)
    assert "\n" not in str(error.value)
    assert os.listdir(tmp_path) == []


# --- Passwords ---


def test_a_password_in_an_address_is_sent_and_never_shown_and_that_of_netrc_is_not_sent(
    server, files, contents, tmp_path, monkeypatch
):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login mine password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    good, sent = serve_packed(contents), []

    def answer(request):
        sent.append(request.headers.get("Authorization"))
        good(request)

    server.answer = answer
    with_password = server.url.replace("://", "://me:pass%20word@")
    lines = []
    fetch(files[:1], tmp_path / "a", [HttpMirror(server.url, SHORT_TIMEOUTS)], lines.append)
    fetch(files[:1], tmp_path / "b", [HttpMirror(with_password, SHORT_TIMEOUTS)], lines.append)
    assert sent == [None, "Basic bWU6cGFzcyB3b3Jk"]
    server.answer = redirect_to(with_password.replace("/mnist/", "/elsewhere/"))
    with pytest.raises(DataError) as error:
        fetch(files[:1], tmp_path / "c", [HttpMirror(with_password, SHORT_TIMEOUTS)], lines.append)
    shown = "\n".join([*lines, str(error.value)])
    assert not re.search("%20|word@|me:", shown)
    assert f"Asking {server.url} for 1 file" in lines
