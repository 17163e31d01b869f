import argparse

import pytest

from app import command_line
from app.data import command

from .conftest import respond, serve_packed


@pytest.fixture
def data(files, tmp_path, monkeypatch, capsys):
    """`python -m app data ...` on a cache of its own: gives the exit status, what was printed, and to stderr."""
    monkeypatch.setattr(command, "FILES", files)

    def run(*words: str) -> tuple[int, str, str]:
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        status = command_line.run(lambda: command.run(parser.parse_args(["--folder", str(tmp_path), *words])))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_it_says_what_is_missing_and_what_to_do(data, files, tmp_path):
    status, printed, _ = data()
    assert status == 0
    assert str(tmp_path) in printed
    assert printed.count(" missing\n") == 4
    assert all(file.name in printed for file in files)
    assert "mnist-sample.npz         1,976,460 bytes, verified" in printed
    assert "`python -m app data fetch`" in printed


def test_fetch_gets_it_and_says_from_where_and_damage_is_shown_later(data, server, contents, files, tmp_path):
    server.answer = serve_packed(contents)
    status, printed, told = data("fetch", "--source", server.url)
    assert status == 0
    assert printed.count("bytes, verified") == 5
    assert "data fetch" not in printed
    assert told.startswith(f"Asking {server.url} for 4 files\n")
    (tmp_path / files[0].name).write_bytes(b"damaged")
    status, printed, _ = data()
    assert status == 0
    assert f"damaged: {files[0].name} should be {files[0].size} bytes; found 7" in printed
    status, printed, told = data("fetch", "--source", server.url)
    assert (status, printed, len(server.requests)) == (1, "", 4)
    assert told.startswith(f"error: {tmp_path / files[0].name} is not MNIST's file of that name: ")


def test_fetch_that_fails_is_status_1_and_one_clear_message(data, server):
    server.answer = respond(b"?", 404)
    status, printed, told = data("fetch", "--source", server.url)
    assert status == 1
    assert printed == ""
    assert "404 Not Found" in told
    assert "No source could give" in told.splitlines()[-1]
    assert "Traceback" not in told


def test_fetch_that_cannot_keep_what_it_fetched_is_status_1(data, server, contents, tmp_path):
    server.answer = serve_packed(contents)
    (tmp_path / "file").touch()
    status, printed, told = data("fetch", "--source", server.url, "--folder", str(tmp_path / "file"))
    assert status == 1
    assert printed.count(" missing\n") == 4
    assert told.count("cannot be kept") == 4


def test_a_source_that_is_no_source_is_status_2(data):
    status, _, told = data("fetch", "--source", "nonsense")
    assert status == 2
    assert "'nonsense' is not a source of data" in told


def test_a_folder_may_begin_with_a_tilde(data, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    status, printed, _ = data("--folder", "~/cache")
    assert status == 0
    assert f"in {tmp_path}/cache" in printed
