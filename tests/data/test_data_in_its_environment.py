"""Processes of their own: killed in the middle of a download, installed without a checkout, in odd surroundings."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.data.files import fetch
from app.data.sources import HttpMirror

from .conftest import SHORT_TIMEOUTS, assert_whole, serve_packed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FETCH = """
from app.data.files import File, fetch
from app.data.sources import HttpMirror
files = [File(name, int(size), sha256) for name, size, sha256 in (line.split() for line in sys.argv[3:])]
fetch(files, __import__("pathlib").Path(sys.argv[1]), [HttpMirror(sys.argv[2])], print)
"""
SAMPLE = "from opsmith.data import load; print(len(load('sample').train_images))"


def start(code: str, *words: str, folder: Path | None = None, path: Path = ROOT, **environment: str):
    """Python with nothing in its environment that it could do without.

    Our package, `app` in a checkout and `opsmith` where it is installed, is a folder of modules and nothing more, which
    loads in a tenth of the time of the whole framework.
    """
    name = "app" if path == ROOT else "opsmith"
    alone = f"import sys, types; package = types.ModuleType({name!r}); package.__path__ = [sys.path[1] + '/{name}']"
    return subprocess.Popen(
        [sys.executable, "-c", f"{alone}; sys.modules[{name!r}] = package\n{code}", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(path), "NO_PROXY": "127.0.0.1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def printed(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    return out


def test_a_killed_download_continues_with_the_file_where_it_was(server, files, contents, tmp_path):
    good, waiting = serve_packed(contents), []

    def stall_at_the_third(request):
        if len(server.requests) < 3:
            return good(request)
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n\x1f\x8b")
        waiting.append(True)
        time.sleep(60)
        return None

    server.answer = stall_at_the_third
    folder = tmp_path / "with spaces, zażółć gęślą 数字"
    descriptions = [f"{file.name} {file.size} {file.sha256}" for file in files]
    process = start(FETCH, str(folder), server.url, *descriptions, LC_ALL="C")
    while not waiting:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert sorted(os.listdir(folder)) == sorted(file.name for file in files[:2])

    server.requests.clear()
    server.answer = good
    fetch(files, folder, [HttpMirror(server.url, SHORT_TIMEOUTS)], lambda _: None)
    assert server.requests == [f"/mnist/{file.name}.gz" for file in files[2:]]
    assert_whole(folder, files, contents)


def test_processes_can_fetch_into_one_folder_at_once(server, files, contents, tmp_path):
    server.answer = serve_packed(contents)
    descriptions = [f"{file.name} {file.size} {file.sha256}" for file in files]
    for process in [start(FETCH, str(tmp_path / "data"), server.url, *descriptions) for _ in range(2)]:
        printed(process)
    assert_whole(tmp_path / "data", files, contents)


@pytest.mark.parametrize(
    "environment",
    [{"LC_ALL": "C", "LANG": "C"}, {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/proc/nothing"}],
    ids=["LANG=C and HOME unset", "a home that is not there, and a cache that cannot be made"],
)
def test_an_installed_package_has_the_sample(installed, tmp_path, environment):
    folder = tmp_path / "数 字"
    folder.mkdir()
    assert printed(start(SAMPLE, folder=folder, path=installed, **environment)) == "10000\n"
    assert os.listdir(folder) == []


def test_the_licence_of_the_sample_is_installed_with_it(installed):
    assert "Attribution-ShareAlike" in (installed / "opsmith" / "data" / "README.md").read_text(encoding="utf-8")


def test_an_installed_package_keeps_files_in_the_cache_of_the_user(installed, tmp_path):
    where = "from opsmith.data import files; print(files.default_folder())"
    assert printed(start(where, path=installed, HOME=str(tmp_path), LC_ALL="C")) == f"{tmp_path}/.cache/opsmith\n"


def test_an_installed_package_without_its_sample_says_how_to_get_it_back(installed, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(installed, bare)
    (bare / "opsmith" / "data" / "mnist-sample.npz").unlink()
    out, err = start(SAMPLE, path=bare).communicate(timeout=60)
    assert out == ""
    assert "mnist-sample.npz cannot be read: No such file or directory" in err
    assert "Installing the package again brings the committed sample back." in err


def test_a_folder_of_images_is_read_from_any_path_in_any_locale(contents, tmp_path):
    folder = tmp_path / "zażółć gęślą 数字"
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    code = "from app.data import load; print(load(sys.argv[1]).origin)"
    assert printed(start(code, str(folder), LC_ALL="C")) == f"the folder {folder}\n"
