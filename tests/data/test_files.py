import hashlib
import os
from pathlib import Path

import pytest

from app.data import files as known
from app.data.files import FILES, OccupiedError, fetch
from app.data.sources import UnreachableError
from app.errors import DataError

from .conftest import Giver, assert_whole


@pytest.fixture
def lines():
    return []


@pytest.fixture
def source(contents):
    return Giver(dict(contents))


def test_a_file_with_other_content_is_an_error_and_is_left(files, contents, tmp_path, lines, source):
    """It is the user's own, or was changed since it was fetched."""
    path, content = tmp_path / files[0].name, contents[files[0].name]
    for own, reason in [
        (b"x" * 12_345, "should be 136 bytes; found 12,345 that begin with b'xxx"),
        (content[:-1], "should be 136 bytes; found 135"),
        (
            content[::-1],
            f"should have the SHA-256 {files[0].sha256}; found {hashlib.sha256(content[::-1]).hexdigest()}",
        ),
    ]:
        path.write_bytes(own)
        with pytest.raises(OccupiedError) as error:
            fetch(files, tmp_path, [source], lines.append)
        for text in (f"{path} is not MNIST's", reason, "so it was left as it is", f"write data.source={tmp_path}"):
            assert text in str(error.value)
        assert source.asked == lines == []
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {path.name: own}


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a link to nowhere", "a device"])
def test_a_path_that_is_not_a_file_is_an_error_and_is_left(files, tmp_path, lines, source, kind):
    place = tmp_path / files[0].name
    {
        "a folder": place.mkdir,
        "a pipe": lambda: os.mkfifo(place),
        "a link to nowhere": lambda: place.symlink_to("nowhere"),  # as to a disk that is not mounted
        "a device": lambda: place.symlink_to("/dev/zero"),
    }[kind]()
    with pytest.raises(OccupiedError, match="No such file" if kind == "a link to nowhere" else f"is {kind}"):
        fetch(files, tmp_path, [source], lines.append)
    assert os.listdir(tmp_path) == [files[0].name]


def test_sources_are_asked_in_order_each_for_missing_files(files, contents, tmp_path, lines, source):
    unreachable = Giver(dict.fromkeys(contents, UnreachableError("no connection")))
    partial = Giver(contents | {files[1].name: DataError("not here"), files[3].name: b"something else"})
    last = Giver({})
    results = fetch(files, tmp_path, [unreachable, partial, source, last], lines.append)
    assert [content.tobytes() for content in results] == list(contents.values())
    assert unreachable.asked == [files[0].name]
    assert partial.asked == [file.name for file in files]
    assert source.asked == [files[1].name, files[3].name]
    assert last.asked == []
    assert lines[:2] == ["Asking giver: for 4 files", "  no connection"]
    assert f"  {files[1].name}: not here" in lines
    assert any(f"{files[3].name} should be" in line for line in lines)
    assert f"  {files[0].name}: {files[0].size:,} bytes, verified" in lines
    assert_whole(tmp_path, files, contents)


def test_an_error_names_the_files_that_no_source_has(files, contents, tmp_path, lines):
    partial = Giver(dict.fromkeys(contents, DataError("not here")) | {files[0].name: contents[files[0].name]})
    with pytest.raises(DataError) as error:
        fetch(files, tmp_path, [partial], lines.append)
    lacking = ", ".join(file.name for file in files[1:])
    assert str(error.value).startswith(f"No source could give {lacking} (asked: giver:).")
    assert str(tmp_path) in str(error.value)


@pytest.mark.parametrize("name", ["a file", "x" * 5000, "nul\0"])
def test_files_that_cannot_be_kept_are_used_for_the_run(files, contents, tmp_path, lines, source, name):
    (tmp_path / "a file").touch()
    results = fetch(files, tmp_path / name, [source], lines.append)
    assert [content.tobytes() for content in results] == list(contents.values())
    assert sum("cannot be kept" in line and "for this run alone" in line for line in lines) == 4


def test_a_file_that_appears_during_the_download_is_left(files, contents, tmp_path, lines):
    class Slow(Giver):
        def fetch(self, name, size):
            (tmp_path / name).write_bytes(b"of another program")
            return super().fetch(name, size)

    assert len(fetch(files[:1], tmp_path, [Slow(dict(contents))], lines.append)) == 1
    assert (tmp_path / files[0].name).read_bytes() == b"of another program"
    assert "cannot be kept" in lines[-1]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout's folder of data, while the user's cache is in `cache`."""
    for folder in ("app", "configs", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "configs" / "default.yaml").touch()
    monkeypatch.setattr("app.files.PACKAGE_FOLDER", tmp_path / "app")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data"


def test_the_folder_is_that_of_the_checkout_if_it_is_writable_or_complete(checkout, monkeypatch):
    assert known.default_folder() == checkout
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != checkout)  # root may write anywhere
    assert known.default_folder() == checkout.with_name("cache") / "opsmith"
    for file in FILES:
        (checkout / file.name).touch()
    assert known.default_folder() == checkout


def test_the_folder_outside_a_checkout_is_the_cache_of_the_user(checkout, tmp_path, monkeypatch):
    (tmp_path / "configs" / "default.yaml").unlink()
    assert known.default_folder() == tmp_path / "cache" / "opsmith"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert known.default_folder() == tmp_path / ".cache" / "opsmith"


@pytest.mark.parametrize("home", ["/proc/self", None])
def test_the_folder_without_a_writable_home_is_temporary(monkeypatch, tmp_path, home):
    monkeypatch.setattr("app.files.PACKAGE_FOLDER", tmp_path / "app")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).startswith("/proc"))
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", home or "~"))  # `~` if it is not known
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert known.default_folder() == tmp_path / f"opsmith-{os.getuid()}"


def test_the_four_files_are_as_large_as_their_arrays():
    assert [file.size for file in FILES] == [16 + 60_000 * 28 * 28, 8 + 60_000, 16 + 10_000 * 28 * 28, 8 + 10_000]
