import hashlib
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from app.data import files as known
from app.data.files import FILES, File, OccupiedError, fetch, read
from app.data.sources import HttpMirror, UnreachableError
from app.errors import DataError

from .conftest import Giver, assert_whole, serve_packed


@pytest.fixture
def said():
    return []


def everything(contents):
    return Giver(dict(contents))


def test_what_is_missing_is_fetched_and_kept_and_not_asked_for_again(files, contents, tmp_path, said):
    found = fetch(files, tmp_path, [everything(contents)], said.append)
    assert [content.tobytes() for content in found] == list(contents.values())
    assert_whole(tmp_path, files, contents)
    assert said[:2] == ["Asking giver: for 4 files", f"  {files[0].name}: {files[0].size:,} bytes, verified"]
    said.clear()
    source = everything(contents)
    again = fetch(files, tmp_path, [source], said.append)
    assert [content.tobytes() for content in again] == list(contents.values())
    assert source.asked == said == []


def test_a_file_with_other_content_is_left_and_told_before_any_source_is_asked(files, contents, tmp_path, said):
    """It is the user's own, or was changed since it was fetched."""
    path, (known, *_), source = tmp_path / files[0].name, files, everything(contents)
    for own, found in [
        (b"x" * 12_345, "should be 136 bytes; found 12,345 that begin with b'xxx"),
        (contents[known.name][:-1], "should be 136 bytes; found 135"),
        (contents[known.name][::-1], hashlib.sha256(contents[known.name][::-1]).hexdigest()),
    ]:
        path.write_bytes(own)
        with pytest.raises(OccupiedError) as error:
            fetch(files, tmp_path, [source], said.append)
        for words in (f"{path} is not MNIST's", found, "so it was left as it is", f"write data.source={tmp_path}"):
            assert words in str(error.value)
        assert source.asked == said == []
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {known.name: own}
    assert known.sha256 in str(error.value)


def test_sources_are_asked_in_order_each_for_what_is_still_missing(files, contents, tmp_path, said):
    first = Giver(contents | {files[1].name: DataError("not here"), files[3].name: b"something else"})
    second, third = everything(contents), everything(contents)
    fetch(files, tmp_path, [first, second, third], said.append)
    assert first.asked == [file.name for file in files]
    assert second.asked == [files[1].name, files[3].name]
    assert third.asked == []
    assert f"  {files[1].name}: not here" in said
    assert any(f"{files[3].name} should be" in line for line in said)
    assert_whole(tmp_path, files, contents)


def test_a_source_that_cannot_be_reached_is_asked_once(files, contents, tmp_path, said):
    first = Giver(dict.fromkeys(contents, UnreachableError("no connection")))
    fetch(files, tmp_path, [first, everything(contents)], said.append)
    assert first.asked == [files[0].name]
    assert said[:2] == ["Asking giver: for 4 files", "  no connection"]


def test_when_all_fail_the_error_names_the_files_the_sources_and_a_way_out(files, contents, tmp_path, said):
    partial = Giver(dict.fromkeys(contents, DataError("not here")) | {files[0].name: contents[files[0].name]})
    with pytest.raises(DataError) as error:
        fetch(files, tmp_path, [partial], said.append)
    assert files[0].name not in str(error.value)
    for text in [*(file.name for file in files[1:]), "giver:", str(tmp_path)]:
        assert text in str(error.value)


@pytest.mark.parametrize("name", ["a file", "x" * 5000, "nul\0"])
def test_what_cannot_be_kept_is_told_and_used_all_the_same(files, contents, tmp_path, said, name):
    (tmp_path / "a file").touch()
    found = fetch(files, tmp_path / name, [everything(contents)], said.append)
    assert [content.tobytes() for content in found] == list(contents.values())
    assert sum("cannot be kept" in line and "for this run alone" in line for line in said) == 4


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a link to nowhere", "a device"])
def test_what_is_not_a_file_is_left_and_told_and_nothing_waits_for_it(files, contents, tmp_path, said, kind):
    place = tmp_path / files[0].name
    {
        "a folder": place.mkdir,
        "a pipe": lambda: os.mkfifo(place),
        "a link to nowhere": lambda: place.symlink_to("nowhere"),  # as to a disk that is not mounted
        "a device": lambda: place.symlink_to("/dev/zero"),
    }[kind]()
    with pytest.raises(OccupiedError, match="No such file" if kind == "a link to nowhere" else f"is {kind}"):
        fetch(files, tmp_path, [everything(contents)], said.append)
    assert os.listdir(tmp_path) == [files[0].name]


def test_a_file_that_appears_meanwhile_is_left(files, contents, tmp_path, said):
    class Slow(Giver):
        def fetch(self, name, size):
            (tmp_path / name).write_bytes(b"of another program")
            return super().fetch(name, size)

    assert len(fetch(files[:1], tmp_path, [Slow(dict(contents))], said.append)) == 1
    assert (tmp_path / files[0].name).read_bytes() == b"of another program"
    assert any("cannot be kept" in line and "for this run alone" in line for line in said)


def test_threads_that_fetch_at_once_all_succeed(files, contents, tmp_path):
    def one(_: int) -> list[bytes]:
        found = fetch(files, tmp_path, [everything(contents)], lambda _: None)
        return [content.tobytes() for content in found]

    with ThreadPoolExecutor(8) as pool:
        assert all(found == list(contents.values()) for found in pool.map(one, range(16)))
    assert_whole(tmp_path, files, contents)


def _fetch_in_a_process(files: tuple[File, ...], folder: Path, url: str) -> list[bytes]:
    return [content.tobytes() for content in fetch(files, folder, [HttpMirror(url)], lambda _: None)]


def test_processes_that_fetch_at_once_all_succeed(server, files, contents, tmp_path):
    server.answer = serve_packed(contents)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        fetched = [pool.submit(_fetch_in_a_process, files, tmp_path, server.url) for _ in range(2)]
        assert all(future.result() == list(contents.values()) for future in fetched)
    assert_whole(tmp_path, files, contents)


def test_a_missing_file_is_named(files, tmp_path):
    with pytest.raises(DataError, match="train-images-idx3-ubyte cannot be read: No such file"):
        read(files[0], tmp_path)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout's folder of data, while the user's cache is in `cache`."""
    (tmp_path / "data").mkdir()
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(known, "CHECKOUT", tmp_path / "data")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data"


def test_the_cache_is_the_checkout_if_it_can_be_written_or_has_all_files(checkout, monkeypatch):
    assert known.default_folder() == checkout
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != checkout)  # root may write anywhere
    assert known.default_folder() == checkout.with_name("cache") / "opsmith"
    for file in FILES:
        (checkout / file.name).touch()
    assert known.default_folder() == checkout


def test_outside_a_checkout_it_is_the_users_own_cache_folder(checkout, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").unlink()
    assert known.default_folder() == tmp_path / "cache" / "opsmith"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert known.default_folder() == tmp_path / ".cache" / "opsmith"


@pytest.mark.parametrize("home", ["/proc/self", "unset"])
def test_without_a_home_that_can_be_written_it_is_a_temporary_folder_of_the_users_own(monkeypatch, tmp_path, home):
    monkeypatch.setattr(known, "CHECKOUT", tmp_path / "data")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home)
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).startswith("/proc"))
    if home == "unset":
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user whom the system does not know
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert known.default_folder() == tmp_path / f"opsmith-{os.getuid()}"


def test_the_four_files_are_as_large_as_their_arrays():
    assert [file.size for file in FILES] == [16 + 60_000 * 28 * 28, 8 + 60_000, 16 + 10_000 * 28 * 28, 8 + 10_000]
    assert [file.dimensions for file in FILES] == [3, 1, 3, 1]
