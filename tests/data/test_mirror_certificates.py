"""A web server whose certificate does not verify is not read from, whatever it would say."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
import trustme

from app.data.download import UnreachableError
from app.data.files import fetch
from app.data.sources import HttpMirror

from .conftest import IMPATIENT, Giver, assert_whole, serve_packed, serving


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """One that this test trusts."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "authority.pem"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return made


def test_a_certificate_of_an_authority_that_is_trusted_will_do(authority, files, contents):
    with serving(authority.issue_cert("127.0.0.1")) as server:
        server.answer = serve_packed(contents)
        mirror = HttpMirror(server.url, IMPATIENT)
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
def test_any_other_is_told_and_the_files_come_from_the_next_source(
    authority, files, contents, tmp_path, certificate, reason
):
    folder, said = tmp_path / "kept", []
    with serving(certificate(authority)) as server:
        server.answer = serve_packed(contents)
        with pytest.raises(UnreachableError, match=rf"no connection .*({reason})"):
            HttpMirror(server.url, IMPATIENT).fetch(files[0].name, files[0].size)
        fetch(files, folder, [HttpMirror(server.url, IMPATIENT), Giver(dict(contents))], said.append)
        assert server.requests == []
    assert "Asking giver: for 4 files" in said
    assert_whole(folder, files, contents)
