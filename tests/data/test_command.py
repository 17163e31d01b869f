import argparse

import pytest

from app import command_line
from app.data import command
from app.errors import FileError

from .conftest import respond, serve_packed


@pytest.fixture
def data(files, server, tmp_path, monkeypatch, capsys):
    """`opsmith data ...` on a cache of its own: gives the exit status, what was printed, and to stderr."""
    monkeypatch.setattr(command, "FILES", files)
    monkeypatch.setattr(command, "SOURCES", [server.url])

    def run(*words: str) -> tuple[int, str, str]:
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        status = command_line.run(lambda: command.run(parser.parse_args(["--folder", str(tmp_path), *words])))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_data_lists_what_is_missing_and_how_to_get_it(data, files, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    status, printed, _ = data("--folder", "~/cache")
    assert status == 0
    assert f"in {tmp_path}/cache\n" in printed
    for file in files:
        assert f"  {file.name:<23} missing\n" in printed
    assert "mnist-sample.npz         1,976,460 bytes, verified" in printed
    assert "`opsmith data fetch`" in printed


def test_fetch_prints_the_source_and_damage_is_listed(data, server, contents, files, tmp_path):
    server.answer = serve_packed(contents)
    status, printed, err = data("fetch")
    assert status == 0
    assert printed.count("bytes, verified") == 5
    assert "data fetch" not in printed
    assert err.startswith(f"Asking {server.url} for 4 files\n")
    (tmp_path / files[0].name).write_bytes(b"damaged")
    status, printed, _ = data()
    assert status == 0
    assert f"damaged: {files[0].name} should be {files[0].size} bytes; found 7" in printed
    status, printed, err = data("fetch")
    assert (status, printed, len(server.requests)) == (1, "", 4)
    assert err.startswith(f"error: {tmp_path / files[0].name} is not MNIST's file of that name: ")


def test_a_folder_that_keeps_nothing_is_an_error_in_the_last_line(data, server, contents, files, tmp_path, monkeypatch):
    def full(path, content):
        raise FileError(f"{path} cannot be written: No space left on device")

    monkeypatch.setattr("app.data.files.write_whole", full)
    server.answer = serve_packed(contents)
    status, _, err = data("fetch")
    names = ", ".join(file.name for file in files)
    assert status == 1
    assert err.splitlines()[-1] == (f"error: {tmp_path} still lacks {names}: what was fetched could not be kept there")


def test_failures_end_in_a_status_and_a_message(data, server, contents, tmp_path):
    server.answer = respond(b"?", 404)
    status, printed, err = data("fetch")
    assert (status, printed) == (1, "")
    assert "404 Not Found" in err
    assert "No source could give" in err.splitlines()[-1]
    server.answer = serve_packed(contents)
    (tmp_path / "file").touch()
    status, printed, err = data("fetch", "--folder", str(tmp_path / "file"))
    assert (status, printed.count(" missing\n"), err.count("cannot be kept")) == (1, 4, 4)
