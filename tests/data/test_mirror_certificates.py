"""A web server whose certificate does not verify is not read from, whatever it would say."""

from __future__ import annotations

import datetime
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from app.data.download import UnreachableError
from app.data.files import fetch
from app.data.sources import HttpMirror

from .conftest import IMPATIENT, Giver, assert_whole, serve_packed

Serve = Callable[[trustme.LeafCert], str]


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """One that this test trusts."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "authority.pem"))
    return made


@pytest.fixture
def serve(contents, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """A mirror with all files that shows the given certificate; gives its address."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = []

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            serve_packed(contents)(self)

        def log_message(self, *_: object) -> None:
            pass

    def start(certificate: trustme.LeafCert) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        listening = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((listening, thread))
        return f"https://127.0.0.1:{listening.server_port}/mnist/"

    yield start
    for listening, thread in running:
        listening.shutdown()
        thread.join()
        listening.server_close()


def test_a_certificate_of_an_authority_that_is_trusted_will_do(serve, authority, files, contents):
    mirror = HttpMirror(serve(authority.issue_cert("127.0.0.1")), IMPATIENT)
    assert mirror.fetch(files[0].name, files[0].size) == contents[files[0].name]


def of_nobody(_: trustme.CA) -> trustme.LeafCert:
    return trustme.CA().issue_cert("127.0.0.1")


def of_another_server(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("example.org")


def of_yesterday(authority: trustme.CA) -> trustme.LeafCert:
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    return authority.issue_cert("127.0.0.1", not_before=now - 9 * day, not_after=now - day)


@pytest.mark.parametrize(
    ("certificate", "reason"),
    [
        (of_nobody, "certificate verify failed"),
        (of_another_server, "IP address mismatch|doesn't match"),
        (of_yesterday, "certificate has expired"),
    ],
)
def test_any_other_is_an_error_and_the_files_come_from_the_next_source(
    serve, authority, files, contents, tmp_path, certificate, reason
):
    mirror = HttpMirror(serve(certificate(authority)), IMPATIENT)
    with pytest.raises(UnreachableError, match=rf"no connection .*({reason})"):
        mirror.fetch(files[0].name, files[0].size)
    folder = tmp_path / "kept"
    said: list[str] = []
    fetch(files, folder, [mirror, Giver(dict(contents))], said.append)
    assert "Asking giver: for 4 files" in said
    assert_whole(folder, files, contents)
