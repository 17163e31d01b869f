import os
from pathlib import Path

import pytest

from app.data import cache
from app.errors import DataError


def test_what_is_kept_is_read_again_and_may_be_written_to(files, contents, tmp_path):
    for file in files:
        cache.keep(contents[file.name], file, tmp_path)
        content = cache.read(file, tmp_path)
        assert content.tobytes() == contents[file.name]
        assert content.flags.writeable


def test_keeping_makes_the_folder_and_leaves_nothing_else_in_it(files, contents, tmp_path):
    folder = tmp_path / "with spaces" / "zażółć gęślą 数字"
    cache.keep(contents[files[0].name], files[0], folder)
    assert sorted(os.listdir(folder)) == [files[0].name]


def test_a_missing_file_is_named(files, tmp_path):
    with pytest.raises(DataError, match="train-images-idx3-ubyte cannot be read: No such file"):
        cache.read(files[0], tmp_path)


def test_a_damaged_file_is_not_read(files, contents, tmp_path):
    good = contents[files[0].name]
    for bad in [b"", good[:-1], good + b"\0", bytes(byte ^ 1 for byte in good)]:
        (tmp_path / files[0].name).write_bytes(bad)
        with pytest.raises(DataError, match="train-images-idx3-ubyte should"):
            cache.read(files[0], tmp_path)


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(files, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte cannot be kept: .*file"):
        cache.keep(b"", files[0], tmp_path / "file")


def test_a_move_that_fails_leaves_no_temporary_file(files, tmp_path):
    (tmp_path / files[0].name).mkdir()
    with pytest.raises(DataError, match="cannot be kept"):
        cache.keep(b"", files[0], tmp_path)
    assert os.listdir(tmp_path) == [files[0].name]


def test_the_cache_is_the_checkout_where_there_is_one(monkeypatch, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(cache, "CHECKOUT", tmp_path / "data")
    assert cache.default_folder() == tmp_path / "data"


def test_outside_a_checkout_it_is_the_users_own_cache_folder(monkeypatch, tmp_path):
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(cache, "CHECKOUT", tmp_path / "data")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache.default_folder() == tmp_path / "cache" / "opsmith"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.default_folder() == tmp_path / ".cache" / "opsmith"


def test_a_read_only_checkout_is_passed_over(monkeypatch, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(cache, "CHECKOUT", tmp_path / "data")
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tmp_path / "data")  # root may write anywhere
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache.default_folder() == tmp_path / "cache" / "opsmith"


@pytest.mark.parametrize("home", ["/proc/self", "unset"])
def test_without_a_home_that_can_be_written_it_is_a_temporary_folder_of_the_users_own(monkeypatch, tmp_path, home):
    monkeypatch.setattr(cache, "CHECKOUT", tmp_path / "data")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home)
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).startswith("/proc"))
    if home == "unset":
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user whom the system does not know
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache.default_folder() == tmp_path / f"opsmith-{os.getuid()}"


def test_a_read_only_checkout_that_has_all_files_is_used(monkeypatch, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "pyproject.toml").touch()
    for file in cache.FILES:
        (tmp_path / "data" / file.name).touch()
    monkeypatch.setattr(cache, "CHECKOUT", tmp_path / "data")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    assert cache.default_folder() == tmp_path / "data"
