"""A web server whose certificate is invalid is not read from."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
import trustme

from app.data.files import fetch
from app.data.sources import HttpMirror

from .conftest import SHORT_TIMEOUTS, Giver, assert_whole, serve_packed, serving

YESTERDAY = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
LAST_WEEK = YESTERDAY - datetime.timedelta(days=7)


@pytest.mark.parametrize(
    ("issue", "reason"),
    [
        (lambda authority: authority.issue_cert("127.0.0.1"), None),
        (lambda _: trustme.CA().issue_cert("127.0.0.1"), "certificate verify failed"),
        (lambda authority: authority.issue_cert("example.org"), "IP address mismatch"),
        (lambda authority: authority.issue_cert("127.0.0.1", not_before=LAST_WEEK, not_after=YESTERDAY), "has expired"),
    ],
    ids=["valid", "unknown authority", "another server", "expired"],
)
def test_files_of_a_server_with_an_invalid_certificate_come_from_the_next_source(
    files, contents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, issue, reason
):
    authority, folder, lines = trustme.CA(), tmp_path / "kept", []
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "authority.pem"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(issue(authority)) as server:
        server.answer = serve_packed(contents)
        fetch(files, folder, [HttpMirror(server.url, SHORT_TIMEOUTS), Giver(dict(contents))], lines.append)
    assert_whole(folder, files, contents)
    if reason is None:
        assert len(server.requests) == 4
    else:
        assert server.requests == []
        assert "no connection (" in lines[1]
        assert reason in lines[1]
        assert lines[2] == "Asking giver: for 4 files"
